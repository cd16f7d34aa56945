"""MK110: a buffer that no task touches."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural


@rule(id="MK110", name="dead-scratch", severity=Severity.NOTE, stage=Stage.WIRING, since="0.1.0")
def dead_scratch(context: Context) -> Iterator[Result]:
    """A buffer is allocated and no task touches it.

    ## What it finds
    Scratch or symmetric memory that is declared and neither read nor written. A warning only where
    the graph has several ranks and no task touches any symmetric memory.

    ## Why it matters
    Mostly it is a buffer that a model builder allocates for a path that this build does not take:
    bytes wasted. But a graph of several ranks that leaves all its symmetric memory alone never
    exchanges anything: an all-reduce is missing.

    ## Example
    Qwen3 on one rank allocates `all_reduce_buf` and never uses it.

    ## How to fix it
    Allocate the buffer only where it is used; in the other case put the all-reduce back.
    """
    lonely = _never_exchanges(context)
    for rank in context.ranks:
        consumption = context.consumption(rank)
        for name, declaration in rank.declarations.items():
            if declaration.origin not in (Origin.SCRATCH, Origin.SYMMETRIC) or consumption.is_touched(name):
                continue
            size = "" if declaration.bytes is None else f" ({plural(declaration.bytes, 'byte')})"
            if lonely and declaration.origin is Origin.SYMMETRIC:
                yield dead_scratch.finding(
                    severity=Severity.WARNING,
                    tensor=name,
                    ranks=(rank.number,),
                    kind="no-exchange",
                    message=f"{name}{size} is symmetric memory that no task touches, as is all of this graph's",
                    consequence="the ranks never exchange anything: each goes on with its own partial sums",
                    fix="put the all-reduce back that should use this buffer",
                )
            else:
                yield dead_scratch.finding(
                    tensor=name,
                    ranks=(rank.number,),
                    message=f"{name}{size} is allocated and no task touches it",
                    consequence="its memory is wasted",
                    fix="do not allocate the buffer in this configuration",
                )


def _never_exchanges(context: Context) -> bool:
    """Whether a graph of several ranks has symmetric memory and leaves all of it alone."""
    several = len(context.ranks) > 1 or (context.megakernel.world_size or 1) > 1
    return several and not any(_touches_symmetric(context, rank) for rank in context.ranks)


def _touches_symmetric(context: Context, rank: Rank) -> bool:
    consumption = context.consumption(rank)
    return any(
        declaration.origin is Origin.SYMMETRIC and consumption.is_touched(name)
        for name, declaration in rank.declarations.items()
    )
