from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mkcov_action.finding import Confidence, Failure, Location, NotChecked, Severity, ranges
from mkcov_action.report import Coverage, CriticalName, RankRefs, Report, Status, Verdict
from mkcov_action.reporters import text
from mkcov_action.reporters.wording import size
from tests.reports import GATHER, finding, graph, rank, report, tensor

CONSUMERS = ((278, GATHER), (296, "TYPE_296"))
ROPE_COS = tensor("rope_cos", refs=(156, 0), consumers=CONSUMERS, critical=True)
UNWIRED = tensor("rope_cos", Status.MISSING_WIRING, critical=True)


def lines(shown: Report, *, all_tensors: bool = False) -> list[str]:
    return text.render(shown, all_tensors=all_tensors).splitlines()


def verdict(shown: Report) -> str:
    return lines(shown)[-1]


# --- figures --------------------------------------------------------------------------------------


def test_each_rank_has_its_figures_on_one_line() -> None:
    shown = lines(report(graphs=(graph(rank(0), rank(1), world_size=2),)))
    figures = (
        "7,242 tasks, 95 events; 91 tensors declared, 84 read, 36 written, 6 dead (1.2 MiB); "
        "45 of 47 model tensors consumed"
    )
    assert shown[:2] == [f"graph gen rank 0 of 2: {figures}", f"graph gen rank 1 of 2: {figures}"]


def test_a_rank_that_was_not_audited_shows_no_figures() -> None:
    broken = rank(0, audited=False)
    half = replace(rank(1, audited=False), kernel=None)
    none = replace(half, rank=2, task_graph=None)
    shown = lines(report(Verdict.ERROR, graphs=(graph(broken, half, none, world_size=None),)))
    assert shown[:3] == [
        "graph gen rank 0: not audited: a file could not be read, see the findings",
        "graph gen rank 1: not audited: no kernel",
        "graph gen rank 2: not audited: no kernel and no task graph",
    ]


def test_no_bytes_are_shown_where_none_are_wasted() -> None:
    (first, *_) = lines(report(graphs=(graph(rank(coverage=Coverage(declared=1, read=1))),)))
    assert "1 tensor declared, 1 read, 0 written, 0 dead; " in first


# --- critical tensors -----------------------------------------------------------------------------


def test_a_wired_critical_tensor_has_the_line_that_people_grep_for() -> None:
    assert (
        "[OK] rope_cos: input_refs=156 consumer_task_types=[278, 296] (TASK_MLA_KV_GATHER_SM100, TYPE_296)"
    ) in lines(report(tensors=(ROPE_COS,)))


def test_an_unwired_critical_tensor_has_the_line_that_people_grep_for() -> None:
    assert "[MISSING-WIRING] rope_cos: input_refs=0" in lines(report(Verdict.FAIL, tensors=(UNWIRED,)))


def test_references_from_unused_slots_do_not_pass_for_wiring() -> None:
    ignored = replace(UNWIRED, input_refs=12)
    expected = "[MISSING-WIRING] rope_cos: input_refs=12 (all in slots that the kernel never reads)"
    assert expected in lines(report(Verdict.FAIL, tensors=(ignored,)))


@pytest.mark.parametrize("status", [Status.MISSING_WIRING, Status.WRITE_ONLY])
def test_a_critical_tensor_that_is_only_written_is_missing_its_wiring(status: Status) -> None:
    written = replace(UNWIRED, status=status, output_refs=4)
    shown = lines(report(Verdict.FAIL, tensors=(written,)))
    assert "[MISSING-WIRING] rope_cos: input_refs=0 output_refs=4 (written, never read)" in shown
    assert "INFO write-only: rope_cos" in shown


def test_a_critical_tensor_that_is_read_but_not_sound_is_not_called_ok() -> None:
    shown = lines(report(tensors=(replace(ROPE_COS, status=Status.PARTIAL),)))
    assert any(line.startswith("[PARTIAL] rope_cos: input_refs=156 ") for line in shown)


def test_a_tensor_that_one_rank_lost_is_missing_and_says_where() -> None:
    refs = tuple(
        RankRefs(rank=number, input_refs=count, output_refs=0, status=status)
        for number, count, status in (
            (0, 156, Status.OK),
            (1, 0, Status.MISSING_WIRING),
            (2, 0, Status.MISSING_WIRING),
        )
    )
    lost = replace(ROPE_COS, status=Status.MISSING_WIRING, ranks=(0, 1, 2), by_rank=refs)
    shown = lines(report(Verdict.FAIL, tensors=(lost,)))
    assert (
        "[MISSING-WIRING] rope_cos: input_refs=0; "
        "ranks differ: rank 0 input_refs=156 ok, ranks 1-2 input_refs=0 missing-wiring"
    ) in shown


def test_a_tensor_that_only_some_ranks_declare_says_so() -> None:
    two = graph(rank(0), rank(1), world_size=2)
    shown = lines(report(graphs=(two,), tensors=(UNWIRED,)))
    assert "[MISSING-WIRING] rope_cos: input_refs=0; declared on rank 0 only" in shown
    assert "INFO dead: rope_cos (rank 0)" in shown


def test_a_critical_name_that_no_kernel_declares_is_listed() -> None:
    missing = CriticalName(graph="gen", name="cos_pos_embed")
    assert "[not-declared] cos_pos_embed" in lines(report(not_declared=(missing,)))


def test_a_gate_with_nothing_to_check_says_so() -> None:
    said = [line for line in lines(report()) if line.startswith("INFO critical: ")]
    assert len(said) == 1
    assert "the critical gate had nothing to check" in said[0]
    assert "still covered by MK102" in said[0]
    assert "no critical tensor to check" in verdict(report())
    assert not [line for line in lines(report(tensors=(ROPE_COS,))) if line.startswith("INFO critical")]


def test_with_several_graphs_every_tensor_line_names_its_graph() -> None:
    both = (graph(), graph(name="my gen"))
    other = replace(UNWIRED, graph="my gen")
    shown = lines(report(Verdict.FAIL, graphs=both, tensors=(UNWIRED, other)))
    assert "[MISSING-WIRING] rope_cos: input_refs=0 graph=gen" in shown
    assert '[MISSING-WIRING] rope_cos: input_refs=0 graph="my gen"' in shown
    assert 'INFO dead: rope_cos graph="my gen"' in shown


# --- write-only, dead, all ------------------------------------------------------------------------


def test_few_unused_tensors_are_named_one_by_one() -> None:
    dead = tuple(tensor(f"layer_{number}_tmp", Status.DEAD) for number in range(3))
    output = tensor("output_token", Status.WRITE_ONLY, refs=(0, 1))
    shown = lines(report(tensors=(*dead, output)))
    assert "INFO write-only: output_token" in shown
    assert "INFO dead: layer_0_tmp, layer_1_tmp, layer_2_tmp" in shown


def test_many_unused_tensors_are_folded_by_family() -> None:
    dead = [tensor(f"layer_{number}_tmp", Status.DEAD) for number in range(61)]
    shown = lines(report(tensors=(*dead, tensor("mlp_out", Status.DEAD), tensor("x2", Status.DEAD))))
    assert "INFO dead: layer_*_tmp (61), mlp_out, x2; 63 tensors in all" in shown


def test_many_unused_families_are_cut_and_counted() -> None:
    dead = tuple(tensor(f"{letter}_tmp", Status.DEAD) for letter in "abcdefghijklmnopqrstuvwxyz")
    (line,) = [each for each in lines(report(tensors=dead)) if each.startswith("INFO dead")]
    assert line.endswith("o_tmp, p_tmp and 10 more; 26 tensors in all")


def test_an_unconsumed_tensor_without_references_counts_as_dead_but_one_in_an_unused_slot_does_not() -> None:
    untouched = tensor("gate", Status.UNCONSUMED)
    ignored = tensor("up", Status.UNCONSUMED, refs=(3, 0))
    assert "INFO dead: gate" in lines(report(tensors=(untouched, ignored)))


def test_all_lists_every_tensor_on_a_line_of_its_own() -> None:
    scratch = tensor("mlp_out", Status.DEAD, origin="scratch", size=4096)
    tensors = (ROPE_COS, scratch, tensor("w", refs=(3, 0)))
    listed = [line for line in lines(report(tensors=tensors), all_tensors=True) if "INFO tensor" in line]
    assert listed == [
        (
            "INFO tensor rope_cos: status=ok origin=model input_refs=156 output_refs=0"
            f" consumer_task_types=[278, 296] ({GATHER}, TYPE_296)"
        ),
        "INFO tensor mlp_out: status=dead origin=scratch bytes=4096 input_refs=0 output_refs=0",
        "INFO tensor w: status=ok origin=model input_refs=3 output_refs=0",
    ]
    assert not [line for line in lines(report(tensors=tensors)) if "INFO tensor" in line]


# --- findings -------------------------------------------------------------------------------------


def section(shown: Report) -> list[str]:
    """The lines of the findings."""
    found = lines(shown)
    first = next(
        index for index, each in enumerate(found) if each.split(" ")[0] in {"error", "warning", "note"}
    )
    return found[first:-1]


def test_a_finding_says_where_what_why_and_how_to_mend_it() -> None:
    assert section(report(Verdict.FAIL, findings=(finding(),))) == [
        (
            "error MK101 missing-wiring gen/kernel_0.cu:110: "
            "rope_cos is attached to the model, and no task reads it"
        ),
        "  effect: attention runs position-blind: fluent text that repeats and makes no sense",
        "  fix: pass rope_cos to the layer that applies rotary embedding, then generate again",
        "",
    ]


def test_a_finding_shows_confidence_column_ranks_members_and_related_places() -> None:
    full = finding(
        confidence=Confidence.POSSIBLE,
        ranks=(1, 2),
        members=tuple(f"layer_{number}_gate" for number in range(9)),
        location=Location(uri="my gen/task_graph_1.json", line=7, column=3),
        related=tuple(Location(uri="gen/kernel_1.cu", line=number, text="a task") for number in range(1, 6)),
    )
    four = graph(*map(rank, range(4)), world_size=4)
    shown = section(report(Verdict.FAIL, graphs=(four,), findings=(full,)))
    assert shown[0].startswith('error (possible) MK101 missing-wiring "my gen/task_graph_1.json":7:3: ')
    assert shown[1:7] == [
        "  ranks: 1-2 of 0-3",
        (
            "  members (9): layer_0_gate, layer_1_gate, layer_2_gate, layer_3_gate, layer_4_gate, layer_5_gate"
            " and 3 more"
        ),
        "  see: gen/kernel_1.cu:1: a task",
        "  see: gen/kernel_1.cu:2: a task",
        "  see: gen/kernel_1.cu:3: a task",
        "  see also: 2 more places",
    ]


def test_a_finding_on_all_ranks_does_not_list_them() -> None:
    two = graph(rank(0), rank(1), world_size=2)
    shown = section(report(Verdict.FAIL, graphs=(two,), findings=(finding(ranks=(0, 1)),)))
    assert not [line for line in shown if "ranks" in line]


def test_a_finding_without_a_line_names_its_graph() -> None:
    shown = section(report(Verdict.FAIL, findings=(finding(location=None),)))
    assert shown[0].startswith("error MK101 missing-wiring gen: ")


def test_findings_keep_their_order_and_neighbours_share_one_effect_and_fix() -> None:
    twins = [finding(message=f"{each} is not read", tensor_name=each) for each in ("b", "a")]
    other = finding("MK109", "write-only-tensor", Severity.NOTE, "c", consequence="none", fix="none")
    shown = section(report(Verdict.FAIL, findings=(*twins, other)))
    assert [line.split(": ")[0] for line in shown] == [
        "error MK101 missing-wiring gen/kernel_0.cu:110",
        "error MK101 missing-wiring gen/kernel_0.cu:110",
        "  effect (each of these 2)",
        "  fix",
        "",
        "note MK109 write-only-tensor gen/kernel_0.cu:110",
        "  effect",
        "  fix",
        "",
    ]
    assert "b is not read" in shown[0]
    assert "a is not read" in shown[1]


# --- what was not checked, failures, verdict ------------------------------------------------------


def test_what_was_not_checked_and_what_went_wrong_stand_before_the_verdict() -> None:
    shown = report(
        Verdict.ERROR,
        not_checked=(NotChecked(rule="MK103", reason="unknown type TYPE_296", graph="gen"),),
        failures=(
            Failure(message="gen/b holds no rank"),
            Failure(message="MK109 failed", internal=True, detail="Traceback …"),
        ),
        warnings=("gen lies outside the root",),
        deselected=("MK105", "MK109"),
    )
    assert lines(replace(shown, exit_code=3))[-7:] == [
        "not checked: MK103: unknown type TYPE_296",
        "not run: MK105, MK109 (2 rules deselected)",
        "ERROR: gen/b holds no rank",
        "INTERNAL ERROR: MK109 failed",
        "WARNING: gen lies outside the root",
        "",
        "VERDICT: ERROR (exit 3): internal error: MK109 failed; 1 more failure",
    ]


def test_a_failed_verdict_counts_the_findings_and_names_the_rules_that_failed_it() -> None:
    found = (
        finding(),
        finding(tensor_name="rope_sin"),
        finding("MK105", "ignored-slot", Severity.WARNING),
        finding("MK109", "write-only-tensor", Severity.NOTE),
    )
    failed = report(Verdict.FAIL, findings=found)
    counts = "VERDICT: FAIL (exit 1): 2 errors, 1 warning, 1 note"
    assert verdict(failed) == f"{counts}; MK101 missing-wiring (2)"
    assert (
        verdict(replace(failed, fail_on="warning"))
        == f"{counts}; MK101 missing-wiring (2), MK105 ignored-slot (1)"
    )


def test_a_pass_says_what_it_proves_and_what_not() -> None:
    passed = report(tensors=(ROPE_COS,), not_checked=(NotChecked(rule="MK103", reason="x"),))
    assert verdict(passed) == (
        "VERDICT: PASS (exit 0): no findings; 1 critical tensor wired; 1 check not made; "
        "structure only, it proves nothing about numerics"
    )


def test_a_pass_without_a_gate_names_what_it_let_through() -> None:
    passed = report(fail_on="never", tensors=(UNWIRED, replace(ROPE_COS, name="b")), findings=(finding(),))
    assert verdict(passed) == (
        "VERDICT: PASS (exit 0): 1 error; --fail-on never lets pass: MK101 missing-wiring (1); "
        "1 of 2 critical tensors wired; structure only, it proves nothing about numerics"
    )


@pytest.mark.parametrize("graphs", [(), (graph(rank(audited=False)),)])
def test_a_pass_over_nothing_claims_nothing(graphs: tuple[object, ...]) -> None:
    expected = "VERDICT: PASS (exit 0): no findings; nothing was audited, so nothing is proven"
    assert verdict(report(graphs=graphs)) == expected


def test_an_error_verdict_gives_its_reason_and_still_counts_findings() -> None:
    failures = (Failure(message="gen is no directory"),)
    broken = report(Verdict.ERROR, failures=failures, findings=(finding(),))
    assert verdict(broken) == (
        "VERDICT: ERROR (exit 2): gen is no directory; 1 error; MK101 missing-wiring (1)"
    )
    assert verdict(report(Verdict.ERROR)) == "VERDICT: ERROR (exit 2): no rank could be audited"


def test_colour_marks_the_verdict() -> None:
    assert "\x1b[1;31mFAIL\x1b[0m (exit 1)" in text.render(report(Verdict.FAIL), color=True)
    assert "\x1b" not in text.render(report(Verdict.FAIL))


def test_plain_output_does_not_wait_for_rich(repository: Path) -> None:
    code = "import sys, mkcov_action.reporters.text; sys.exit('rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=repository)


# --- words ----------------------------------------------------------------------------------------


def test_sizes_change_unit_where_the_rounded_figure_would_reach_1024() -> None:
    assert [size(each) for each in (0, 1023, 1024, 1024**2 - 1, 1024**2, 3 * 1024**4, 2**60)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.0 MiB",
        "1.0 MiB",
        "3.0 TiB",
        "1,048,576.0 TiB",
    ]


def test_runs_of_ranks_are_drawn_together() -> None:
    assert ranges([5, 0, 1, 2, 7, 6, 9]) == "0-2, 5-7, 9"
