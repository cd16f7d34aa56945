"""MK107: attention that is built without rotary tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mkcov_action.analyses.consumption import branch_of
from mkcov_action.analyses.null_slots import step_flags, step_slots
from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural, verb


@rule(
    id="MK107",
    name="position-blind-attention",
    severity=Severity.WARNING,
    stage=Stage.WIRING,
    since="0.1.0",
)
def position_blind_attention(context: Context) -> Iterator[Result]:
    """Attention is built without its rotary tables.

    ## What it finds
    Attention whose cos and sin slots are both nullptr and whose kernel skips the rotary step. An error
    if other tasks of the same graph have the tables.

    ## Why it matters
    Some models take positions elsewhere. Most do not: their text then stays fluent and makes no
    sense, and no kernel on its own computes a wrong number.

    ## Example
    A builder calls `paged_attention_layer` without `cos_pos_embed` and `sin_pos_embed`.

    ## How to fix it
    Pass both tables to the attention layer, or ignore this rule for a model without rotary positions.
    """
    for rank in context.ranks:
        blind, sighted, unclear = _attention(context, rank)
        for operator in unclear:
            yield position_blind_attention.not_checked(
                f"{operator} has no rotary tables, and its body does not tell whether it takes the step"
            )
        for operator, tasks in blind.items():
            others = (
                f", while {plural(sighted, 'task')} of other attention {verb(sighted)} both"
                if sighted
                else ""
            )
            yield position_blind_attention.finding(
                severity=Severity.ERROR if sighted else Severity.WARNING,
                operator=operator,
                tasks=tasks,
                ranks=(rank.number,),
                message=f"{plural(tasks, 'task')} of {operator} {verb(tasks)} no rotary tables{others}",
                consequence="this attention does not know positions, unless the model brings them in elsewhere",
                fix="pass both rotary tables to the attention layer in the model builder",
            )


def _attention(context: Context, rank: Rank) -> tuple[Counter[Operator], int, list[Operator]]:
    """How many tasks of each operator skip the rotary step for want of tables; how many take it.

    And the operators without tables of which it is not known whether they skip it.
    """
    blind: Counter[Operator] = Counter()
    unclear: set[Operator] = set()
    sighted = 0
    for occupancy, tasks in context.occupancies(rank).items():
        slots = step_slots(occupancy.operator).get("rope", ())
        flag = step_flags(branch_of(rank, occupancy.operator)).get("rope")
        if slots and not flag and occupancy.nulls.issuperset(slots):
            if flag is None:
                unclear.add(occupancy.operator)
            else:
                blind[occupancy.operator] += tasks
        elif slots and not occupancy.nulls.intersection(slots):
            sighted += tasks
    return blind, sighted, sorted(unclear)
