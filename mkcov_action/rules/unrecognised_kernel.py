"""MK005: the kernel declares no tensor."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK005",
    name="unrecognised-kernel",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def unrecognised_kernel(context: Context) -> Iterator[Result]:
    """The kernel source declares no tensor in any known form.

    ## What it finds
    A `.cu` file without a single `all_tensors["name"] = …` in a form that a known generator prints.

    ## Why it matters
    Without declarations there is nothing to hold the task graph against, and a gate that found
    nothing to check must not be green. (A dispatcher of an unknown form is no error: the rules that
    need it then say that they were not checked.)

    ## Example
    An empty file, or a hand-written kernel under a generated kernel's name.

    ## How to fix it
    Check that the file is the generator's output; if a new generator wrote it, report its form.
    """
    yield from findings_of(
        context,
        unrecognised_kernel,
        ProblemKind.UNRECOGNISED,
        consequence="nothing about this rank can be proved",
        fix="check that this file is what the generator wrote for the rank",
    )
