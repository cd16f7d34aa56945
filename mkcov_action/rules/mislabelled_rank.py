"""MK008: a file's name and its content disagree about the rank."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK008",
    name="mislabelled-rank",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def mislabelled_rank(context: Context) -> Iterator[Result]:
    """The rank in the file name is not the rank that the file was generated for.

    ## What it finds
    The generator writes the rank into the trigger event of task 1. It is held against the file name;
    and two files of one graph that claim the same rank are reported.

    ## Why it matters
    Ranks that share an output directory overwrite each other's files, and then every rank runs one
    rank's graph: it waits for signals that never come, or writes its results over another's.

    ## Example
    `task_graph_1.json` whose first event belongs to rank 0.

    ## How to fix it
    Give every rank an output directory or a file name of its own, and generate again.
    """
    yield from findings_of(
        context,
        mislabelled_rank,
        ProblemKind.MISLABELLED,
        consequence="one rank runs another rank's graph, or the audit saw only one of two files",
        fix="give every rank its own file name or directory and generate again",
    )
