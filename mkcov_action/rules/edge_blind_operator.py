"""MK308: an operator whose writes the generator does not see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.finding import Operator, Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed


@rule(id="MK308", name="edge-blind-operator", severity=Severity.NOTE, stage=Stage.ORDER, since="0.1.0")
def edge_blind_operator(context: Context) -> Iterator[Result]:
    """An operator writes only through its inputs, so that nothing waits for it.

    ## What it finds
    Operators without outputs whose kernel writes into an input, and of which a reader does not wait for
    the write. (Where the order comes about another way, nothing is said.)

    ## Why it matters
    The generator draws edges from outputs to inputs. What is written through an input has no edge to
    its readers, and the reader that needs it is reported as unordered: this is why.

    ## Example
    The KV gather registers four inputs and no output, and fills the fourth.

    ## How to fix it
    Register what the kernel writes as an output of its layer.
    """
    for rank in context.ranks:
        report = context.races(rank)
        if isinstance(report, NoOrder):
            continue
        calls = context.operators(rank).calls
        blind: defaultdict[Operator, set[str]] = defaultdict(set)
        for race in report.reads:
            if not calls[race.earlier].outputs:
                blind[calls[race.earlier].operator].add(race.tensor)
        for operator, tensors in sorted(blind.items()):
            yield edge_blind_operator.finding(
                operator=operator,
                ranks=(rank.number,),
                message=f"{operator} writes {listed(sorted(tensors))} through an input and has no output: the generator"
                " draws no edge to those who read it",
                consequence="its readers do not wait for it",
                fix="register what the kernel writes as an output of its layer",
            )
