"""MK111: a critical pattern that matches nothing."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.config import matcher
from mkcov_action.finding import Place, Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(id="MK111", name="vacuous-critical", severity=Severity.WARNING, stage=Stage.WIRING, since="0.1.0")
def vacuous_critical(context: Context) -> Iterator[Result]:
    """A critical pattern that the user gave matches no declared tensor.

    ## What it finds
    A name or pattern of `--critical` that no rank of the graph declares. The built-in patterns are
    not meant: no model has all of those names.

    ## Why it matters
    A gate on a tensor that does not exist is always green. A renamed tensor takes its gate with it.

    ## Example
    `--critical rope_cos` on Qwen3, whose table is called `cos_position_embedding`.

    ## How to fix it
    Correct the pattern; `mkcov check --all` lists the names that are declared.
    """
    if not context.ranks:
        return
    declared = {name.lower() for rank in context.ranks for name in rank.declarations}
    for pattern in context.config.critical_given:
        if any(map(matcher((pattern,)), declared)):
            continue
        yield vacuous_critical.finding(
            message=f"the critical pattern {pattern} matches no declared tensor",
            consequence="this part of the gate checks nothing",
            fix="correct the pattern; `mkcov check --all` lists the declared names",
            ranks=tuple(rank.number for rank in context.ranks),
            kind=pattern,
            place=Place(rank=context.ranks[0].number),
        )
