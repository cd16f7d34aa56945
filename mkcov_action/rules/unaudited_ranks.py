"""MK002: the graph has more ranks than were given."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Place, Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed


@rule(id="MK002", name="unaudited-ranks", severity=Severity.NOTE, stage=Stage.ARTIFACTS, since="0.1.0")
def unaudited_ranks(context: Context) -> Iterator[Result]:
    """The kernel was generated for more ranks than were audited.

    ## What it finds
    Each kernel states its world size (`assert(num_gpus = N)`). Where fewer ranks were given, the
    others were not looked at.

    ## Why it matters
    Ranks are generated one by one, and a fault can sit in one of them only. What a rank writes into
    another rank's memory can be judged only with both at hand.

    ## Example
    A directory with ranks 0 and 1 of a graph of eight.

    ## How to fix it
    Give all ranks: put their files into one directory, or join directories with `--one-graph`.
    """
    size = context.megakernel.world_size
    given = [rank.number for rank in context.megakernel.ranks if rank.files.any]
    if size is None or not given or len(given) >= size:
        return
    yield unaudited_ranks.finding(
        message=f"the kernel was generated for {size:,} ranks, of which {_given(given)}",
        consequence="a fault in another rank, or between ranks, would not be seen",
        fix="give the artifacts of every rank, joining directories with --one-graph if needed",
        ranks=tuple(given),
        place=Place(rank=given[0], text="here too"),
    )


def _given(ranks: list[int]) -> str:
    return (
        f"only rank {ranks[0]} was given"
        if len(ranks) == 1
        else f"{len(ranks):,} were given: {listed(ranks, 8)}"
    )
