"""MK101: a critical tensor that no task reads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mkcov_action.finding import Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import ignored_slots, plural

_FIX = (
    "in the model builder pass the tensor to the layer that needs it, so that a task takes it as an input,"
    " and generate again"
)
_ROTARY = re.compile(r"rope|cos|sin", re.IGNORECASE)


@rule(
    id="MK101",
    name="missing-wiring",
    severity=Severity.ERROR,
    stage=Stage.WIRING,
    since="0.1.0",
)
def missing_wiring(context: Context) -> Iterator[Result]:
    """A critical tensor is declared and no task reads it.

    ## What it finds
    A tensor that matches a critical pattern (the rotary tables by default, `--critical` for others)
    and that no task reads through a slot that its kernel uses.

    ## Why it matters
    Nothing else tells. The megakernel compiles, runs and exits 0; every kernel on its own computes
    the right numbers. With the rotary tables unread, attention does not know positions: the model
    writes fluent text that makes no sense and repeats itself.

    ## Example
    A GLM-5.1 megakernel attached `rope_cos` and `rope_sin`; no task took them. After the fix 156
    tasks did.

    ## How to fix it
    In the model builder pass the tensor to the layer that needs it, and let that layer's task take
    it as an input that the kernel's body uses. Then generate again.
    """
    for rank in context.ranks:
        consumption = context.consumption(rank)
        for name in rank.declarations:
            if not context.config.is_critical(name) or consumption.is_read(name):
                continue
            usage = consumption.of(name)
            message = f"{name} is declared and no task reads it"
            if usage.input_refs:
                message += (
                    f": its {plural(usage.input_refs, 'reference')} as an input stand in slots that the"
                    f" kernel does not read ({ignored_slots(consumption, name)})"
                )
            elif usage.output_refs:
                message += f", although {plural(usage.output_refs, 'task output')} name it"
            yield missing_wiring.finding(
                tensor=name,
                ranks=(rank.number,),
                message=message,
                consequence=_consequence(name),
                fix=_FIX,
            )


def _consequence(name: str) -> str:
    if _ROTARY.search(name):
        return (
            "attention runs position-blind: the text stays fluent and turns incoherent, while every kernel's"
            " numerics test passes"
        )
    return "the model runs without this tensor, and no numerics test of a single kernel can tell"
