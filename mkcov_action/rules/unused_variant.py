"""MK203: a branch of the dispatcher that no task takes."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.dispatch import absences_of
from mkcov_action.finding import Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(id="MK203", name="unused-variant", severity=Severity.NOTE, stage=Stage.DISPATCH, since="0.1.0")
def unused_variant(context: Context) -> Iterator[Result]:
    """A branch of the dispatcher has no task.

    ## What it finds
    A type and variant for which the kernel has code and the task graph has no task.

    ## Why it matters
    Mostly it is harmless: the generator never forgets what another graph of the same process
    registered. It can also be what is left of an operator that the graph lost.

    ## Example
    A process builds a graph for prefill and one for decode: the second kernel has both sets of code.

    ## How to fix it
    Nothing, if you know where the code comes from. Else look for the operator in the model builder.
    """
    for rank in context.ranks:
        dispatcher = rank.kernel.dispatcher if rank.kernel else None
        if dispatcher is None:
            continue
        operators = context.consumption(rank).dispatch
        # Of types whose name is not clear one may be what the branch is for.
        maybe = {name for _, names in absences_of(rank, dispatcher).doubtful for name in names}
        for operator in dispatcher.branches:
            if operator not in operators and operator.type_name not in maybe:
                yield unused_variant.finding(
                    operator=operator,
                    ranks=(rank.number,),
                    kind=str(operator.variant),
                    message=f"the dispatcher has code for {operator}, and no task is of that kind",
                    consequence="harmless, unless an operator was lost from the graph",
                    fix="if the model should have the operator, find out why the builder left it out",
                )
