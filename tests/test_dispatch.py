"""Which operators have code, and which absences are certain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from mkcov_action.task_types import absences, name_task_types

LINEAR, NORM, SILU = (2, 1), (2, 1), (1, 1)


@pytest.mark.parametrize(
    "counts, dispatched, expected",
    [
        # A type of the table in the middle, at the end, and one that only a fork has.
        ({119: NORM, 120: LINEAR, 121: SILU}, ["TASK_RMS_NORM", "TASK_IDENTITY"], {120: True}),
        ({119: NORM, 120: LINEAR}, ["TASK_RMS_NORM"], {120: True}),
        ({119: NORM, 296: LINEAR}, ["TASK_RMS_NORM"], {296: True}),
        # A branch at its place that nobody took, and that may be it.
        (
            {118: SILU, 119: NORM, 296: LINEAR, 297: LINEAR},
            ["TASK_SILU_MUL", "TASK_RMS_NORM", "TASK_OURS"],
            {296: False, 297: False},
        ),
        # A branch at its place whose slots are others': a leftover.
        ({119: NORM, 120: LINEAR}, ["TASK_RMS_NORM", "TASK_SILU_MUL"], {120: True}),
        ({119: NORM, 120: LINEAR}, ["TASK_RMS_NORM", "TASK_LINEAR"], {}),
    ],
)
def test_an_absence_is_certain_where_no_branch_can_be_meant(
    counts: Mapping[int, tuple[int, int]], dispatched: Sequence[str], expected: Mapping[int, bool]
) -> None:
    slots = {number: [count] for number, count in counts.items()}
    names = name_task_types(slots, dispatched)
    found = absences(names, slots, dispatched)
    doubtful = {number: False for numbers, _ in found.doubtful for number in numbers}
    assert dict.fromkeys(found.certain, True) | doubtful == expected


def test_a_stale_header_makes_no_absence() -> None:
    """It calls a type by a name that the dispatcher does not know, while a branch is left over."""
    slots = {119: [NORM], 120: [LINEAR]}
    dispatched = ["TASK_RMS_NORM", "TASK_LINEAR"]
    names = name_task_types(slots, dispatched, {120: "TASK_OLD"})
    assert names[120] == "TASK_OLD"
    assert absences(names, slots, dispatched).doubtful == (((120,), ("TASK_LINEAR",)),)
