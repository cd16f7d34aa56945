"""MK004: the JSON is not a task graph."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK004",
    name="schema-violation",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def schema_violation(context: Context) -> Iterator[Result]:
    """The JSON parses and is not a task graph as any known generator writes it.

    ## What it finds
    A missing field, a value of the wrong type or out of range, or tasks of two generations of the
    format in one file, with its JSON pointer, line and column.

    ## Why it matters
    The loader checks little: it wraps numbers that are too large, takes a missing list of tasks for
    an empty graph, and overruns its arrays. What it makes of such a file is anyone's guess.

    ## Example
    `/all_tasks/17/task_type: expected int, got str`.

    ## How to fix it
    If the file was edited by hand, undo that; if a newer generator wrote it, report the format.
    """
    yield from findings_of(
        context,
        schema_violation,
        ProblemKind.SCHEMA,
        consequence="the loader may read garbage where this value stands, and nothing in this rank was audited",
        fix="generate the task graph again with a generator and a loader of one version",
    )
