"""Families: attached tensors that differ only in the layer number, and how each layer is wired."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mkcov_action.analyses.consumption import Consumption

_LAYER = re.compile(r"(?:(?<=layers)|(?<=layer))([_.]?)([0-9]{1,9})(?![0-9])")

Signature = frozenset[tuple[str, int]]
"""What reads a tensor: type name and input slot, whatever the variant."""


@dataclass(frozen=True, slots=True)
class Family:
    """The members of one family by layer number, in order; `name` has `*` for the number."""

    name: str
    members: Mapping[int, str]


def layer_of(tensor: str) -> int | None:
    """The layer number in a tensor's name (`layer_<n>`, `layers.<n>`); None if it has none."""
    match = _LAYER.search(tensor)
    return int(match.group(2)) if match else None


def families_of(tensors: Iterable[str]) -> list[Family]:
    """The families of tensors with a layer number, in the order of their first member."""
    found: dict[str, dict[int, str]] = {}
    for tensor in tensors:
        match = _LAYER.search(tensor)
        if match:
            name = f"{tensor[: match.start()]}{match.group(1)}*{tensor[match.end() :]}"
            found.setdefault(name, {})[int(match.group(2))] = tensor
    return [Family(name, dict(sorted(members.items()))) for name, members in found.items()]


def signature_of(tensor: str, consumption: Consumption) -> Signature:
    """What reads a tensor through a used slot."""
    return frozenset(
        (slot.operator.type_name, slot.index)
        for slot in consumption.of(tensor).slots
        if consumption.accesses[slot].reads
    )


def deviants(signatures: Sequence[Signature]) -> tuple[Signature, list[int]] | None:
    """The signature of the majority, and where members deviate from it in the middle of the layers.

    None if there is no majority or if the deviants are too many to be a mistake (more than two and
    more than a tenth). A run at either end of the numbering is a design: dense first layers, a last
    layer of its own.
    """
    majority, count = Counter(signatures).most_common(1)[0]
    odd = [place for place, signature in enumerate(signatures) if signature != majority]
    if 2 * count <= len(signatures) or len(odd) > max(2, len(signatures) // 10):
        return None
    start = next((place for place, signature in enumerate(signatures) if signature == majority), 0)
    stop = len(signatures) - next(
        (place for place, signature in enumerate(reversed(signatures)) if signature == majority), 0
    )
    return majority, [place for place in odd if start <= place < stop]
