"""The benchmark scripts run and measure what they claim; how fast, no test asks."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import sys
from pathlib import Path

import pytest

from benchmarks import audit_vs_seed, process_tree, seed_method, validation
from benchmarks.process_tree import Measurement
from tools.builder import decoder, write_ranks

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")


def a_comparison() -> audit_vs_seed.Comparison:
    mkcov = [Measurement(seconds, 100_000_000, (1,)) for seconds in (1.0, 9.0, 2.0)]
    seed = [Measurement(seconds, 400_000_000, (0, 0)) for seconds in (8.0, 7.0, 8.5)]
    return audit_vs_seed.Comparison(2, 243_000_000, mkcov, seed)


HOLD = """
import sys, time
from pathlib import Path
block = bytearray(64 << 20)
Path(sys.argv[1]).touch()
while not all(Path(flag).exists() for flag in sys.argv[1:]):
    time.sleep(0.01)
time.sleep(0.3)  # several samples
"""
SPAWN = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"


def test_memory_is_summed_over_children_and_grandchildren(tmp_path: Path) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    alone = process_tree.measure([[sys.executable, "-c", HOLD, str(tmp_path / "alone")]])
    child = [sys.executable, "-c", HOLD, first, second]
    grandchild = [sys.executable, "-c", SPAWN, HOLD, second, first]
    both = process_tree.measure([child, grandchild])
    assert alone.statuses == (0,)
    assert both.statuses == (0, 0)
    assert 64 << 20 < alone.peak_bytes < 128 << 20
    assert both.peak_bytes > 128 << 20


def test_commands_run_at_once_and_their_statuses_are_kept() -> None:
    command = [sys.executable, "-c", "import sys, time; time.sleep(0.5); sys.exit(3)"]
    measurement = process_tree.measure([command, command])
    assert measurement.statuses == (3, 3)
    assert 0.5 <= measurement.seconds < 60


def test_this_process_is_its_own_tree_and_the_dead_hold_nothing() -> None:
    assert os.getpid() in process_tree.process_trees([os.getpid()])
    assert process_tree.memory_of(os.getpid()) > 0
    assert process_tree.memory_of(2**22 + 1) == 0


def test_the_seed_method_counts_what_no_task_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel, graph = tmp_path / "kernel_0.cu", tmp_path / "task_graph_0.json"
    kernel.write_text('all_tensors["a"] = a;\nall_tensors["b"] = b;\n', encoding="utf-8")
    task = {"task_type": 120, "inputs": [{"base_ptr": "a"}], "outputs": None}
    graph.write_text(json.dumps({"all_tasks": [task]}), encoding="utf-8")
    seed_method.main(str(kernel), str(graph))
    assert capsys.readouterr().out == "2 declared, 1 never read\n"


def test_compressed_artifacts_are_unpacked_beside_the_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "graph"
    source.mkdir()
    (source / "kernel_0.cu.gz").write_bytes(gzip.compress(b"kernel"))
    (source / "task_graph_0.json.xz").write_bytes(lzma.compress(b"{}"))
    (source / "kernel_1.cu").write_bytes(b"plain")
    monkeypatch.setattr(audit_vs_seed, "BUILD", tmp_path / "build")
    target = audit_vs_seed.unpacked(source)
    found = {path.name: path.read_bytes() for path in target.iterdir()}
    assert found == {"kernel_0.cu": b"kernel", "task_graph_0.json": b"{}", "kernel_1.cu": b"plain"}
    assert audit_vs_seed.unpacked(target) == target


def test_medians_and_ratios_reach_the_table_and_the_readme() -> None:
    table = audit_vs_seed.table(a_comparison())
    assert table.splitlines()[2].split() == ["wall", "time", "2.00", "s", "8.00", "s", "0.25"]
    assert table.splitlines()[3].split() == ["peak", "memory", "100", "MB", "400", "MB", "0.25"]
    block = audit_vs_seed.readme_block(a_comparison())
    assert "**0.25** of the time and **0.25** of the memory" in block
    assert "2.00" not in block  # ratios only: seconds belong to one machine


def test_a_failed_process_is_no_measurement() -> None:
    with pytest.raises(SystemExit, match="exit statuses"):
        audit_vs_seed.checked(Measurement(1.0, 1, (2,)), {0, 1})


def test_the_whole_comparison_runs_on_a_tiny_graph(capsys: pytest.CaptureFixture[str]) -> None:
    tiny = audit_vs_seed.ROOT / "fixtures" / "demo" / "wired"
    assert audit_vs_seed.main([str(tiny), "--rounds", "1"]) == 0
    assert "wall time" in capsys.readouterr().out


def test_what_validation_costs_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_ranks(decoder(tasks=300), tmp_path / "gen")
    assert validation.main([str(tmp_path / "gen"), "--rounds", "1", "--tasks", "50"]) == 0
    share, ratio = re.findall(r"takes ([0-9.]+) ", capsys.readouterr().out)
    assert 0 <= float(share) < 1
    assert float(ratio) > 1
