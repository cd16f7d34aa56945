"""MK102: a model tensor that no task touches."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import ignored_slots, listed
from mkcov_action.task_types import is_runtime_tensor


@rule(id="MK102", name="unconsumed-tensor", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def unconsumed_tensor(context: Context) -> Iterator[Result]:
    """A tensor of the model is attached and no task reads or writes it.

    ## What it finds
    A model tensor (attached from torch) or a shuffled one (weights copied together at start) that no
    task touches through a slot that its kernel uses. A note only for the tensors that the runtime
    itself carries (`input_token`, `output_token`, `step` and their like).

    ## Why it matters
    Nobody attaches a weight for nothing: a norm, a bias, a scale or a table that no task takes is a
    layer computed without it.

    ## Example
    `layer_1_k_norm` is attached and the attention of layer 1 was built without it.

    ## How to fix it
    Pass the tensor to its layer in the model builder, or do not attach it.
    """
    for rank in context.ranks:
        unknown = [name for name, item in rank.declarations.items() if item.origin is Origin.UNKNOWN]
        if unknown:
            yield unconsumed_tensor.not_checked(
                f"{listed(unknown)}: declared in a form that is not known, so neither as attached nor as memory"
            )
        consumption = context.consumption(rank)
        for name, declaration in rank.declarations.items():
            if declaration.origin not in (Origin.MODEL, Origin.SHUFFLED) or consumption.is_touched(name):
                continue
            carried = is_runtime_tensor(name)
            slots = ignored_slots(consumption, name)
            yield unconsumed_tensor.finding(
                severity=Severity.NOTE if carried else Severity.ERROR,
                tensor=name,
                ranks=(rank.number,),
                kind="runtime" if carried else "",
                message=f"{name} is attached and no task reads or writes it"
                + (f": it stands only in {slots}, which the kernel never uses" if slots else ""),
                consequence="harmless if the runtime hands it over by itself, as it does for this name"
                if carried
                else "the model computes without this tensor",
                fix="pass the tensor to the layer that needs it, or do not attach it",
            )
