"""MK008: a file's name and its content disagree about the rank."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Place, ProblemKind, Severity
from mkcov_action.rules._problems import findings_of
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


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
    The generator writes the rank into the trigger event of task 1. It is held against the file name,
    and against the world size that the kernel states (`assert(num_gpus = N)`), on which all ranks must
    agree; and two files of one graph that claim the same rank are reported.

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
        fix=_FIX,
    )
    yield from _against_world_size(context)


_MOST_RANKS = 1 << 16  # an event id holds 16 bits of rank (runtime_header.h)
_FIX = "give every rank its own file name or directory and generate again"


def _against_world_size(context: Context) -> Iterator[Result]:
    """Files of several runs that came together: a rank too many, or ranks of worlds of several sizes."""
    sizes: dict[int, list[int]] = {}
    for rank in context.ranks:
        size = rank.kernel.world_size if rank.kernel else None
        if size is None:
            continue
        sizes.setdefault(size, []).append(rank.number)
        if size > _MOST_RANKS:
            yield mislabelled_rank.finding(
                message=f"the kernel of rank {rank.number} was generated for {size:,} ranks: an event id holds {_MOST_RANKS:,}",
                consequence="the number is wrong, so nobody knows how many ranks there are",
                fix=_FIX,
                ranks=(rank.number,),
                kind="world size beyond event ids",
                place=Place(rank=rank.number, line=1, text="here too"),
            )
        if rank.number >= size:
            yield mislabelled_rank.finding(
                message=f"rank {rank.number} cannot be: its kernel was generated for {plural(size, 'rank')}",
                consequence="the file belongs to another rank or another run, and so does what was audited",
                fix=_FIX,
                ranks=(rank.number,),
                kind="world size",
                place=Place(rank=rank.number, line=1, text="here too"),
            )
    if len(sizes) > 1:
        first, *others = ranks = [numbers[0] for numbers in sizes.values()]
        worlds = ", ".join(f"{plural(size, 'rank')} (rank {listed(sizes[size])})" for size in sorted(sizes))
        yield mislabelled_rank.finding(
            message=f"the kernels were generated for worlds of different sizes: {worlds}",
            consequence="ranks of different runs were put together: they do not belong to one graph",
            fix="generate all ranks in one run, into a directory of their own",
            ranks=tuple(ranks),
            kind="world sizes",
            place=Place(rank=first, line=1),
            mentions=tuple(Place(rank=number, line=1, text="another world size") for number in others),
        )
