"""MK108: one layer wired unlike all others."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.families import Signature, deviants, families_of, signature_of
from mkcov_action.finding import Place, Severity
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.task_types import TASK_TYPES

_FEWEST = 4


@rule(id="MK108", name="partial-wiring", severity=Severity.WARNING, stage=Stage.WIRING, since="0.1.0")
def partial_wiring(context: Context) -> Iterator[Result]:
    """A layer's tensor is read by other tasks than its siblings in all other layers.

    ## What it finds
    Attached tensors that differ only in the layer number, four or more, of which all but one or two
    (or a tenth) are read by the same task types through the same slots. Layers at either end of the
    numbering may differ: dense first layers, a last layer of its own.

    ## Why it matters
    One layer of many that is wired otherwise hardly shows in the text and never in a kernel's own
    test. It is what a loop with a special case leaves behind.

    ## Example
    `layer_7_q_norm` sits in the slot of the key's norm, and in 27 other layers in the query's.

    ## How to fix it
    Compare the layer's calls in the model builder with those of its neighbours.
    """
    for rank in context.ranks:
        consumption = context.consumption(rank)
        attached = [
            name
            for name, declaration in rank.declarations.items()
            if declaration.origin in (Origin.MODEL, Origin.SHUFFLED)
        ]
        for family in families_of(attached):
            names = list(family.members.values())
            signatures = [signature_of(name, consumption) for name in names]
            if len(names) < _FEWEST or (odd := deviants(signatures)) is None:
                continue
            majority, places = odd
            sibling = next(name for name, own in zip(names, signatures, strict=True) if own == majority)
            for place in places:
                yield partial_wiring.finding(
                    tensor=names[place],
                    ranks=(rank.number,),
                    kind=_read_by(signatures[place]),
                    message=f"{names[place]} is {_read_by(signatures[place])}, and its {len(names) - len(places):,}"
                    f" siblings are {_read_by(majority)}",
                    consequence="this layer computes something else than all others",
                    fix="compare the layer's calls in the model builder with those of its neighbours",
                    mentions=(_sibling(rank, sibling),),
                )


def _sibling(rank: Rank, tensor: str) -> Place:
    return Place(rank=rank.number, tensor=tensor, text=f"{tensor}, as the others")


def _read_by(signature: Signature) -> str:
    if not signature:
        return "read by no task"
    return "read as " + ", ".join(_slot(type_name, index) for type_name, index in sorted(signature))


def _slot(type_name: str, index: int) -> str:
    role = TASK_TYPES.get(type_name)
    name = f" ({role.inputs[index].name})" if role and index < len(role.inputs) else ""
    return f"input {index}{name} of {type_name}"
