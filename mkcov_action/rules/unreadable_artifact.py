"""MK007: a file cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK007",
    name="unreadable-artifact",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def unreadable_artifact(context: Context) -> Iterator[Result]:
    """An artifact is there and cannot be read.

    ## What it finds
    A file without permission, a directory, pipe or device under an artifact's name, a symbolic link
    that leads nowhere or in a circle, compressed data that does not decompress, or a kernel whose text
    ends in the middle of a block.

    ## Why it matters
    The rank stays unaudited, and a gate that skipped it in silence would be green for the wrong
    reason.

    ## Example
    `task_graph_0.json` written by root in a container and read by the runner's own user.

    ## How to fix it
    Mend the permissions or the link, or copy the file again.
    """
    yield from findings_of(
        context,
        unreadable_artifact,
        ProblemKind.UNREADABLE,
        consequence="nothing about this rank can be proved",
        fix="mend the permissions or the link, or copy the file again",
    )
