"""The engine: folding, placing, ordering and identity of findings; what a crash leaves standing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action import engine
from mkcov_action.artifacts import ArtifactFile, RankFiles
from mkcov_action.config import Config
from mkcov_action.finding import (
    Artifact,
    Finding,
    NotChecked,
    Operator,
    Place,
    Severity,
    fingerprint_of,
    natural,
)
from mkcov_action.kernel_source import Branch, Declaration, Dispatcher, KernelSource, Origin
from mkcov_action.megakernel import Megakernel, Rank
from mkcov_action.rules import RULES, Context, Rule, Stage

LINEAR = Operator("TASK_LINEAR", 0)


def finding(tensor: str | None = "x", rank: int = 0, **fields: Any) -> Finding:
    plain: dict[str, Any] = {
        "rule": "MK102",
        "name": "unconsumed-tensor",
        "severity": Severity.ERROR,
        "message": f"{tensor} is unread",
        "consequence": "",
        "fix": "",
        "ranks": (rank,),
        "tensor": tensor,
    }
    return Finding(**plain | fields)


def rank_of(number: int, *, kernel: bool = True) -> Rank:
    files = {artifact: ArtifactFile(Path("nowhere"), f"gen/{artifact}_{number}") for artifact in Artifact}
    source = KernelSource(
        {"x": Declaration("x", Origin.MODEL, 7 + number), "y": Declaration("y", Origin.MODEL, 9)},
        Dispatcher(100, {LINEAR: Branch(LINEAR, 120, None, None)}),
        2,
    )
    return Rank(
        number=number,
        files=RankFiles(rank=number, kernel=files[Artifact.KERNEL], task_graph=files[Artifact.TASK_GRAPH]),
        kernel=source if kernel else None,
    )


MEGAKERNEL = Megakernel(graph="gen", ranks=(rank_of(0), rank_of(1)))


def rule_of(results: list[Any], **fields: Any) -> Rule:
    def check(context: Context) -> Iterator[Any]:
        del context
        for result in results:
            if isinstance(result, Exception):
                raise result
            yield result

    rule = Rule("MK102", "unconsumed-tensor", Severity.ERROR, Stage.WIRING, "0.1.0", check, "")
    return replace(rule, **fields)


def run(*rules: Rule, config: Config | None = None) -> engine.Outcome:
    return engine.run(Context(MEGAKERNEL, config or Config()), rules)


def test_the_same_fault_on_several_ranks_is_one_finding() -> None:
    (folded,) = run(rule_of([finding(rank=1), finding(rank=0)])).findings
    assert (folded.ranks, folded.members) == ((0, 1), ())
    assert folded.location
    assert (folded.location.uri, folded.location.line) == ("gen/kernel_0", 7)


def test_the_same_fault_in_several_layers_is_one_finding_with_members() -> None:
    names = ["layer_10_norm", "layer_2_norm", "layer_1_norm"]
    (folded,) = run(rule_of([finding(name) for name in names])).findings
    assert folded.members == ("layer_1_norm", "layer_2_norm", "layer_10_norm")
    assert folded.tensor == "layer_1_norm"
    assert "2 more of its family: layer_2_norm, layer_10_norm" in folded.message


@pytest.mark.parametrize(
    "other",
    [
        finding("y"),
        finding(severity=Severity.NOTE),
        finding(kind="runtime"),
        finding(operator=LINEAR),
        finding(rule="MK103"),
    ],
    ids=["another tensor", "another severity", "another kind", "another operator", "another rule"],
)
def test_different_faults_stay_apart(other: Finding) -> None:
    assert len(run(rule_of([finding(), other])).findings) == 2


@pytest.mark.parametrize(
    "place, uri, line",
    [
        (Place(rank=1, tensor="x"), "gen/kernel_1", 8),
        (Place(rank=0, tensor="undeclared", operator=LINEAR), "gen/kernel_0", 120),
        (Place(rank=0, operator=Operator("TASK_LINEAR", 5)), "gen/kernel_0", 100),
        (Place(rank=0), "gen/kernel_0", 100),
        (Place(rank=0, artifact=Artifact.TASK_GRAPH, line=5), "gen/task_graph_0", 5),
        (Place(rank=0, uri="gen/other.cu"), "gen/other.cu", 100),
    ],
)
def test_a_place_is_the_declaration_else_the_branch_else_the_dispatcher(
    place: Place, uri: str, line: int
) -> None:
    location = engine.location_of(place, MEGAKERNEL)
    assert (location.uri, location.line) == (uri, line)


def test_without_a_kernel_a_place_is_the_first_line_of_what_is_there() -> None:
    alone = Megakernel(graph="gen", ranks=(rank_of(0, kernel=False), Rank(number=1, files=RankFiles(rank=1))))
    assert engine.location_of(Place(rank=0, tensor="x"), alone).line == 1
    assert engine.location_of(Place(rank=1), alone).uri == "gen/kernel_0"
    nothing = Megakernel(graph="gen", ranks=(Rank(number=1, files=RankFiles(rank=1)),))
    assert engine.location_of(Place(rank=1), nothing).uri == "gen"


def test_findings_come_worst_first_then_by_rule_and_name() -> None:
    seen = [
        finding("layer_10", rule="MK105", severity=Severity.WARNING),
        finding("b10"),
        finding("b9"),
        finding("a", rule="MK101"),
        finding("z", severity=Severity.NOTE),
    ]
    order = [(item.rule, item.tensor) for item in run(rule_of(seen)).findings]
    assert order == [("MK101", "a"), ("MK102", "b9"), ("MK105", "layer_10"), ("MK102", "z")]


def test_a_crash_costs_only_the_rules_own_findings() -> None:
    outcome = run(rule_of([finding(), ValueError("oops")]), rule_of([finding()], id="MK103"))
    assert len(outcome.findings) == 1
    (failure,) = outcome.failures
    assert failure.internal
    assert failure.message.startswith(
        "rule MK102 unconsumed-tensor on rank 0, 1: ValueError: oops (test_engine.py:"
    )


def test_what_was_not_checked_is_said_once_with_its_graph() -> None:
    said = NotChecked(rule="MK102", reason="no")
    assert run(rule_of([said, said])).not_checked == (NotChecked(rule="MK102", reason="no", graph="gen"),)


@pytest.mark.parametrize(
    "settings, runs",
    [
        ({}, True),
        ({"select": frozenset({"MK101"})}, False),
        ({"ignore": frozenset({"MK102"})}, False),
        ({"select": frozenset({"MK102"}), "ignore": frozenset({"MK102"})}, False),
    ],
)
def test_a_rule_runs_if_it_is_selected_and_not_ignored_or_cannot_be_switched_off(
    settings: dict[str, Any], runs: bool
) -> None:
    config = Config(**settings)
    assert bool(run(rule_of([finding()]), config=config).findings) == runs
    assert run(rule_of([finding()], locked=True), config=config).findings


def test_a_rule_s_findings_have_the_severity_that_the_user_gave_it_unless_it_is_locked() -> None:
    config = Config(severities={"MK102": Severity.NOTE, "MK101": Severity.WARNING})
    assert [item.severity for item in run(rule_of([finding()]), config=config).findings] == [Severity.NOTE]
    locked = run(rule_of([finding()], locked=True), config=config)
    assert [item.severity for item in locked.findings] == [Severity.ERROR]
    assert [item.severity for item in run(rule_of([finding()])).findings] == [Severity.ERROR]


def test_only_rules_about_unaudited_files_are_locked() -> None:
    assert {rule.id for rule in RULES if rule.locked} == {
        "MK001",
        "MK003",
        "MK004",
        "MK005",
        "MK007",
        "MK008",
    }


@pytest.mark.parametrize(
    "change",
    [
        {"ranks": (1,)},
        {"message": "otherwise"},
        {"tensor": "layer_7_norm"},
        {"operator": Operator("TASK_LINEAR", 3)},
        {"members": ("a", "b")},
        {"severity": Severity.NOTE},
        {"place": Place(rank=0, line=99)},
    ],
    ids=str,
)
def test_a_fingerprint_survives_a_regenerated_kernel(change: dict[str, Any]) -> None:
    first = finding("layer_1_norm", graph="gen", operator=LINEAR)
    assert fingerprint_of(replace(first, **change)) == fingerprint_of(first)


@pytest.mark.parametrize(
    "change",
    [
        {"graph": "other"},
        {"rule": "MK103"},
        {"tensor": "layer_1_proj"},
        {"operator": Operator("TASK_RMS_NORM", 0)},
        {"kind": "runtime"},
    ],
    ids=str,
)
def test_a_fingerprint_tells_faults_apart(change: dict[str, Any]) -> None:
    first = finding("layer_1_norm", graph="gen", operator=LINEAR)
    assert fingerprint_of(replace(first, **change)) != fingerprint_of(first)


@given(st.lists(st.builds(finding, st.sampled_from(["a", "layer_1_x", "layer_2_x", "b"]), st.integers(0, 1))))
def test_folding_loses_no_tensor_and_no_rank(seen: list[Finding]) -> None:
    folded = engine.fold(seen)
    assert {(tensor, rank) for item in seen for tensor in [item.tensor] for rank in item.ranks} <= {
        (tensor, rank) for item in folded for tensor in (item.members or [item.tensor]) for rank in item.ranks
    }
    assert len(folded) == len({fingerprint_of(item) for item in folded})


def test_the_tasks_of_other_variants_are_counted_in_the_message() -> None:
    seen = [
        finding(None, rank, message="3 tasks are wrong", operator=Operator("TASK_A", variant), tasks=tasks)
        for rank in (1, 0)
        for variant, tasks in ((2, 5), (0, 3), (1, 4))
    ]
    (folded,) = engine.fold(seen)
    assert folded.message == "3 tasks are wrong; the same holds for 9 tasks of variant 1, 2"
    assert folded.ranks == (0, 1)
    (alone,) = engine.fold(seen[1:2])
    assert alone.message == "3 tasks are wrong"


@given(st.lists(st.text() | st.from_regex(r"[a-z]{0,2}[0-9]{0,6000}", fullmatch=True)))
def test_natural_order_never_fails(names: list[str]) -> None:
    in_order = sorted(names, key=natural)
    assert sorted(in_order, key=natural) == in_order
