"""MK001: a rank lacks one of its two files."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Artifact, Place, ProblemKind, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(
    id="MK001",
    name="missing-artifact",
    severity=Severity.ERROR,
    stage=Stage.ARTIFACTS,
    since="0.1.0",
    locked=True,
)
def missing_artifact(context: Context) -> Iterator[Result]:
    """A rank has only one of its two files, or a rank that was asked for has neither.

    ## What it finds
    Every rank needs its kernel (`kernel_<rank>.cu`, `test_rank<rank>.cu` or `test.cu`) and its
    task graph (`task_graph_<rank>.json`, `task_graph_rank<rank>.json` or `task_graph.json`).

    ## Why it matters
    What a tensor is declared as stands in one file, who uses it in the other. With one half missing
    nothing about this rank is known, and a green gate would say the opposite.

    ## Example
    `--ranks 0,3` on a directory that holds ranks 0 and 1 reports rank 3.

    ## How to fix it
    Let code generation write both files into one directory, upload both, or name with `--ranks` the
    ranks that are really there.
    """
    for rank in context.megakernel.ranks:
        missing = [problem.artifact for problem in rank.problems if problem.kind is ProblemKind.MISSING]
        if missing:
            yield missing_artifact.finding(
                message=_message(rank, missing),
                consequence="nothing about this rank can be proved",
                fix="generate or upload both files of the rank into the same directory",
                ranks=(rank.number,),
                kind="neither" if len(missing) == 2 else missing[0].value,
                place=Place(rank=rank.number, line=1, uri=_present(rank), text="here too"),
            )


def _message(rank: Rank, missing: list[Artifact]) -> str:
    if len(missing) == 2:
        return f"rank {rank.number} was asked for and has neither a kernel nor a task graph"
    if missing[0] is Artifact.KERNEL:
        return f"rank {rank.number} has a task graph and no kernel beside it"
    return f"rank {rank.number} has a kernel and no task graph beside it"


def _present(rank: Rank) -> str | None:
    return rank.uri(Artifact.KERNEL) or rank.uri(Artifact.TASK_GRAPH)
