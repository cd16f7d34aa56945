"""MK003: the task graph is not JSON."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK003",
    name="malformed-json",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def malformed_json(context: Context) -> Iterator[Result]:
    """The task graph does not parse as JSON.

    ## What it finds
    Text that is cut off, breaks JSON's grammar (NaN included), is not UTF-8, nests too deep, or
    repeats a key within one object, with line and column.

    ## Why it matters
    The kernel's loader ends the process on most of these and takes the last of two equal keys in
    silence: what an editor shows is then not what runs.

    ## Example
    A file that ends in the middle of `all_tasks`, because the disk was full or the copy was stopped.

    ## How to fix it
    Generate the file again; compare its size with the generator's output.
    """
    yield from findings_of(
        context,
        malformed_json,
        ProblemKind.MALFORMED,
        consequence="the kernel's loader fails on this file or reads something else, and nothing in it was audited",
        fix="generate the task graph again and check that it was written and copied whole",
    )
