"""MK002: the graph has more ranks than were given."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Place, Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(id="MK002", name="unaudited-ranks", severity=Severity.NOTE, stage=Stage.ARTIFACTS, since="0.1.0")
def unaudited_ranks(context: Context) -> Iterator[Result]:
    """The kernel was generated for more ranks than were audited.

    ## What it finds
    Each kernel states its world size (`assert(num_gpus = N)`). With fewer ranks given, the others
    were not looked at.

    ## Why it matters
    Ranks are generated one by one, and a fault can sit in one of them only. What a rank writes into
    another rank's memory can be judged only with both at hand.

    ## Example
    A directory with ranks 0 and 1 of a graph of eight.

    ## How to fix it
    Give all ranks: put their files into one directory, or join directories with `--one-graph`.
    """
    size = context.megakernel.world_size
    audited = [rank.number for rank in context.ranks]
    if size is None or not audited or len(audited) >= size:
        return
    listed = ", ".join(map(str, audited))
    yield unaudited_ranks.finding(
        message=f"the kernel was generated for {size} ranks and {len(audited)} were audited: {listed}",
        consequence="a fault in another rank, or between ranks, would not be seen",
        fix="give the artifacts of every rank, joining directories with --one-graph if needed",
        ranks=tuple(audited),
        place=Place(rank=audited[0], text="here too"),
    )
