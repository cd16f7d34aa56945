"""Real graphs: the figures of the independent coverage files, and the truth that is known of each."""

from __future__ import annotations

import json
import lzma
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.finding import Confidence, Finding, Operator, Severity
from mkcov_action.report import Report, Status, Verdict

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
GRAPHS = sorted(path.parent.name for path in CORPUS.glob("*/coverage.json"))
CLEAN = (
    "qwen3-0.6b-hopper",
    "qwen3-30b-a3b-moe-blackwell",
    "qwen3-8b-blackwell-2layers",
    "qwen3-8b-hopper-2layers",
)

pytestmark = pytest.mark.skipif(not GRAPHS, reason="the corpus of real graphs (../shared/corpus) is not here")

_reports: dict[str, Report] = {}


def report_of(graph: str) -> Report:
    if graph not in _reports:
        _reports[graph] = audit(Config(paths=(str(CORPUS / graph),), root=CORPUS))
    return _reports[graph]


def expected(graph: str) -> dict[str, Any]:
    return json.loads((CORPUS / graph / "coverage.json").read_text())  # type: ignore[no-any-return]


def recount(
    graph: str, rank: int
) -> tuple[dict[str, Counter[str]], dict[str, dict[str, set[int]]], list[str]]:
    """An independent count: every input and output of every task by name, and the declared names."""
    folder = CORPUS / graph
    with lzma.open(folder / f"task_graph_{rank}.json.xz") as stream:
        tasks = json.load(stream)["all_tasks"]
    with lzma.open(folder / f"kernel_{rank}.cu.xz", "rt") as stream:
        declared = re.findall(r'all_tensors\["([^"]+)"\] = ', stream.read())
    refs: dict[str, Counter[str]] = {"inputs": Counter(), "outputs": Counter()}
    types: dict[str, dict[str, set[int]]] = {"inputs": {}, "outputs": {}}
    for task in tasks:
        for side in ("inputs", "outputs"):
            for tensor in task[side] or ():
                refs[side][tensor["base_ptr"]] += 1
                types[side].setdefault(tensor["base_ptr"], set()).add(task["task_type"])
    return refs, types, declared


@pytest.mark.parametrize("graph", GRAPHS)
def test_the_figures_of_every_rank_equal_the_independent_ones(graph: str) -> None:
    report = report_of(graph)
    ranks = {rank.rank: rank for rank in report.graphs[0].ranks}
    for truth in expected(graph).values():
        rank = ranks[truth["rank"]]
        alone = audit(Config(paths=(str(CORPUS / graph),), root=CORPUS, ranks=(truth["rank"],)))
        tensors = {tensor.name: tensor for tensor in alone.tensors}
        assert (rank.tasks, rank.events) == (truth["ntasks"], truth["n_events"])
        assert rank.coverage.declared == truth["n_declared"] - 1 == len(tensors)
        dead = {name for name, item in tensors.items() if not item.input_refs + item.output_refs}
        assert dead == set(truth["dead"]) - {"nullptr"}
        assert rank.coverage.dead == len(dead)
        unread = {name for name, item in tensors.items() if item.output_refs and not item.input_refs}
        assert unread == set(truth["write_only"])
        assert sum(item.input_refs for item in tensors.values()) == truth["input_refs_total"]
        assert sum(item.output_refs for item in tensors.values()) == truth["output_refs_total"]
        for name, critical in truth["crit"].items():
            assert (name in tensors) == critical["declared"]
            if name in tensors:
                found = tensors[name]
                assert (found.input_refs, found.output_refs) == (critical["in_refs"], critical["out_refs"])
                assert [refs.task_type for refs in found.consumers] == critical["consumers"]
                assert found.critical


@pytest.mark.parametrize("graph", GRAPHS)
def test_each_tensor_counts_as_an_independent_reading_counts_it(graph: str) -> None:
    report = report_of(graph)
    lowest = report.graphs[0].ranks[0].rank
    refs, types, declared = recount(graph, lowest)
    assert [tensor.name for tensor in report.tensors] == [name for name in declared if name != "nullptr"]
    for tensor in report.tensors:
        assert tensor.input_refs == refs["inputs"][tensor.name]
        assert tensor.output_refs == refs["outputs"][tensor.name]
        assert {item.task_type for item in tensor.consumers} == types["inputs"].get(tensor.name, set())
        assert {item.task_type for item in tensor.producers} == types["outputs"].get(tensor.name, set())


@pytest.mark.parametrize("graph", CLEAN)
def test_clean_graphs_pass_without_a_warning(graph: str) -> None:
    report = report_of(graph)
    assert loud(report) == []
    assert (report.verdict, report.exit_code, report.failures) == (Verdict.PASS, 0, ())
    assert report.not_checked == ()


@pytest.mark.parametrize(
    "graph, lines",
    [
        ("deepseek-v3-2layers", ("rope_cos", "rope_sin")),
        ("deepseek-v3-2layers-tp2", ("rope_cos", "rope_sin")),
        ("deepseek-v3-61layers-tp8", ("rope_cos", "rope_sin")),
    ],
)
def test_deepseek_is_wired_but_for_its_rotary_tables(graph: str, lines: tuple[str, ...]) -> None:
    """Of the wiring: what it gets wrong in dispatch and order has tests of its own."""
    report = report_of(graph)
    bad = [finding for finding in loud(report) if finding.rule < "MK2"]
    assert [(finding.rule, finding.tensor) for finding in bad] == [("MK101", name) for name in lines]
    assert (report.verdict, report.exit_code) == (Verdict.FAIL, 1)
    with lzma.open(CORPUS / graph / "kernel_0.cu.xz", "rt") as stream:
        source = stream.read().split("\n")
    for finding in bad:
        assert finding.location
        assert finding.location.uri == f"{graph}/kernel_0.cu"
        assert source[finding.location.line - 1].strip().startswith(f"char *{finding.tensor} = ")
        assert finding.ranks == tuple(rank.rank for rank in report.graphs[0].ranks)


def test_every_status_of_a_clean_graph_is_ok_dead_or_a_result() -> None:
    report = report_of("qwen3-8b-hopper-2layers")
    counts = Counter(tensor.status for tensor in report.tensors)
    assert counts == {Status.OK: 37, Status.DEAD: 3, Status.WRITE_ONLY: 1}


def edited(graph: str, tmp_path: Path, change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Report:
    """The report on a real graph in which `change` replaced task inputs (None: with nullptr)."""
    for source in (CORPUS / graph).glob("*.xz"):
        text = lzma.decompress(source.read_bytes()).decode()
        if source.name.startswith("task_graph"):
            data = json.loads(text)
            for task in data["all_tasks"]:
                task["inputs"] = [change(tensor) or NULLPTR for tensor in task["inputs"] or ()] or None
            text = json.dumps(data, indent=2)
        (tmp_path / source.name.removesuffix(".xz")).write_text(text)
    return audit(Config(paths=(str(tmp_path),), root=tmp_path))


NULLPTR = {"base_ptr": "nullptr", "data_type": 999, "dims": [], "offset": 0, "strides": []}


def loud(report: Report) -> list[Finding]:
    return [finding for finding in report.findings if finding.severity > Severity.NOTE]


def test_qwen_without_its_rotary_tables_fails_without_any_option(tmp_path: Path) -> None:
    tables = {"cos_position_embedding", "sin_position_embedding"}
    report = edited(
        "qwen3-0.6b-hopper", tmp_path, lambda tensor: None if tensor["base_ptr"] in tables else tensor
    )
    (finding,) = loud(report)
    assert finding.rule == "MK106"
    assert all(table in finding.message for table in tables)
    assert report.exit_code == 1
    status = {tensor.name: tensor.status for tensor in report.tensors}
    assert {status[table] for table in tables} == {Status.MISSING_WIRING}


@pytest.mark.parametrize("graph", [graph for graph in GRAPHS if graph.startswith("qwen")])
@pytest.mark.parametrize("how", ["by nullptr", "by the norm of layer 0"])
def test_cutting_one_norm_from_qwen_gives_one_finding_that_names_it(
    graph: str, how: str, tmp_path: Path
) -> None:
    def cut(tensor: dict[str, Any]) -> dict[str, Any] | None:
        if tensor["base_ptr"] != "layer_1_k_norm":
            return tensor
        return None if how == "by nullptr" else tensor | {"base_ptr": "layer_0_k_norm"}

    # That two ranks race has a test of its own.
    (finding,) = (found for found in loud(edited(graph, tmp_path, cut)) if found.rule != "MK504")
    assert finding.rule == ("MK106" if how == "by nullptr" else "MK102")
    assert "layer_1_k_norm" in finding.message
    assert finding.severity is Severity.ERROR


# --- dispatch and order ---------------------------------------------------------------------------


def findings(graph: str, rule: str) -> list[Finding]:
    return [finding for finding in report_of(graph).findings if finding.rule == rule]


def test_the_join_before_the_experts_waits_for_twice_its_triggers() -> None:
    (finding,) = findings("deepseek-v3-2layers", "MK302")
    assert finding.message.startswith(
        "event 51, which starts TASK_MOE_W13_FP8_SM100 variant 0 of layer 3, waits for 18 triggers and gets 9"
    )
    assert finding.message.endswith("1,810 of 7,240 tasks never run behind it")
    assert finding.operator == Operator("TASK_MOE_W13_FP8_SM100", 0)


def test_the_same_join_in_every_layer_is_one_finding() -> None:
    (finding,) = findings("deepseek-v3-61layers-tp8", "MK302")
    assert finding.members == tuple(f"layer {layer}" for layer in range(3, 61))
    assert "so do 57 more events in layers 3-60" in finding.message
    assert "157,875 of 163,889 tasks never run" in finding.message
    assert finding.ranks == (0, 1)


def test_the_identical_quantize_tasks_are_one_finding() -> None:
    """Eight tasks in eleven operators, sixty-four in one: 152, of which 64 are of variant 0."""
    (finding,) = findings("deepseek-v3-2layers", "MK205")
    assert finding.message.startswith("64 tasks of TASK_QUANTIZE_FP8_SM100 variant 0 do the work of 8")
    assert "the same holds for 88 tasks of variant 1, 2 … 4" in finding.message


@pytest.mark.parametrize("graph", GRAPHS)
def test_of_order_and_dispatch_nothing_else_is_wrong(graph: str) -> None:
    loud_rules = {finding.rule for finding in loud(report_of(graph)) if "MK2" < finding.rule < "MK4"}
    assert loud_rules == (set() if graph.startswith("qwen3") else {"MK205", "MK302"})


# --- ranks ----------------------------------------------------------------------------------------


def test_the_output_projection_is_not_summed_over_the_ranks() -> None:
    (finding,) = findings("deepseek-v3-2layers-tp2", "MK506")
    assert finding.ranks == (1,)
    assert finding.message.startswith("128 tasks of TASK_LINEAR_WITH_RESIDUAL_SM100 variant 0")
    assert "layer_0_attn_proj_fused, layer_3_attn_proj_fused" in finding.message


@pytest.mark.parametrize(
    "graph", ["qwen3-8b-hopper-2layers-tp2", "deepseek-v3-2layers-tp2", "deepseek-v3-61layers-tp8"]
)
def test_the_ranks_of_real_graphs_agree(graph: str) -> None:
    assert findings(graph, "MK501") == findings(graph, "MK502") == []


# --- memory ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "graph, decode, layers",
    [
        ("deepseek-v3-2layers", "TASK_MLA_MTP_DECODE_SM100", ("layer 0", "layer 3")),
        ("deepseek-v3-2layers-tp2", "TASK_MLA_MTP_DECODE_TP2_SM100", ("layer 0", "layer 3")),
        ("deepseek-v3-61layers-tp8", "TASK_MLA_MTP_DECODE_TP8_SM100", tuple(f"layer {n}" for n in range(61))),
    ],
)
def test_the_decode_does_not_wait_for_the_gather_and_all_else_follows(
    graph: str, decode: str, layers: tuple[str, ...]
) -> None:
    (finding,) = (f for f in loud(report_of(graph)) if f.rule.startswith("MK4"))
    assert (finding.rule, finding.tensor, finding.members) == ("MK402", "contiguous_kv", layers)
    assert finding.confidence is Confidence.POSSIBLE
    assert f"{decode} variant 0 reads contiguous_kv" in finding.message
    assert "does not wait for TASK_MLA_KV_GATHER_SM100 variant 0" in finding.message
    assert "c_latent_out" in finding.message  # the reuse of scratch is a number, and no finding
    (cause,) = findings(graph, "MK308")
    assert cause.operator == Operator("TASK_MLA_KV_GATHER_SM100", 0)


def test_each_sum_reads_its_own_tile_too_early_and_the_peer_overwrites_the_buffer() -> None:
    """256 tasks a rank read their rank's partial sum; 256 pairs of puts and sums share a buffer."""
    early = [f for f in findings("qwen3-8b-hopper-2layers-tp2", "MK504") if f.severity is Severity.ERROR]
    assert {f.tensor for f in early} == {"attn_proj_out", "mlp_out"}
    assert sum(f.tasks for f in early) == 256
    assert all(f.ranks == (0, 1) for f in early)
    (late,) = (f for f in findings("qwen3-8b-hopper-2layers-tp2", "MK504") if f.severity is Severity.WARNING)
    assert (late.tensor, late.tasks, late.ranks) == ("all_reduce_buf", 256, (0, 1))


def test_of_one_rank_alone_nothing_is_guessed() -> None:
    report = audit(Config(paths=(str(CORPUS / "qwen3-8b-hopper-2layers-tp2"),), root=CORPUS, ranks=(0,)))
    assert loud(report) == []
    assert {item.rule for item in report.not_checked} == {"MK404", "MK502", "MK504"}
