"""`mkcov selftest`: every fault that it plants into the user's artifacts is caught, and theirs stay as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mkcov_action import selftest as core
from mkcov_action.artifacts import discover
from mkcov_action.commands import cli
from mkcov_action.config import Config
from mkcov_action.faults import FAULTS
from tools.rule_cases.case import Small


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["selftest", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_the_demo_catches_all_and_is_not_touched(repository: Path, tmp_path: Path) -> None:
    demo = tmp_path / "wired"
    shutil.copytree(repository / "fixtures" / "demo" / "wired", demo)
    before = {path.name: path.read_bytes() for path in demo.iterdir()}
    result = run(demo, "--all")
    assert result.exit_code == 0, result.output
    assert "MISSED" not in result.output
    assert result.output.count("\ncaught ") + result.output.count("\nno place ") == len(FAULTS)
    assert {path.name: path.read_bytes() for path in demo.iterdir()} == before


@pytest.mark.parametrize("graph", ["qwen3-8b-hopper-2layers", "deepseek-v3-2layers"])
def test_real_graphs_catch_all_even_where_they_have_faults_already(corpus: Path, graph: str) -> None:
    result = run(corpus / graph, "--seed", 3)
    assert result.exit_code == 0, result.output
    assert "SELFTEST: " in result.output
    assert "MISSED" not in result.output


def test_a_rule_that_does_not_look_is_a_miss(tmp_path: Path) -> None:
    Small.whole().write(tmp_path)
    config = Config(paths=(str(tmp_path),), root=tmp_path, ignore=frozenset({"MK302"}))
    (graph,) = discover(config).graphs
    found = {trial.fault.name: trial for trial in core.trials(core.texts_of(graph), config)}
    assert not found["trigger counted twice"].caught
    assert found["trigger counted twice"].planted
    assert found["metadata edited"].caught


def test_what_cannot_be_audited_is_one_line_and_exit_2(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    broken = tmp_path / "broken"
    _, task_graph = Small.whole().write(broken)
    task_graph.write_text(task_graph.read_text()[:500])
    lone = tmp_path / "lone"
    kernel, _ = Small.whole().write(lone)
    kernel.unlink()
    for directory in ("empty", "broken", "lone", "none"):
        result = run(tmp_path / directory)
        assert result.exit_code == 2
        assert result.output.count("\n") == 1
        assert result.output.startswith("Error: ")
