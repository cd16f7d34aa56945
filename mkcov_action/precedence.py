"""One cause, one finding: drops what a stronger finding explains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from mkcov_action.analyses.consumption import Consumption, SlotKey
from mkcov_action.finding import Finding, family_of
from mkcov_action.megakernel import Rank
from mkcov_action.rules import Context

# For the same tensor on the same rank.
_SILENCES = {
    "MK101": frozenset({"MK102", "MK105", "MK108", "MK109", "MK110"}),
    "MK102": frozenset({"MK105", "MK108"}),
}
# What a tensor shows whose last reader took another operand by mistake.
_OF_LOST_READERS = frozenset({"MK101", "MK102", "MK109"})

SlotName = tuple[str, str, int]
"""A slot as all layers share it: type name, side and index."""


def without_explained(findings: Iterable[Finding], context: Context) -> list[Finding]:
    """The findings, each seen on one rank, that no stronger one of them explains."""
    findings = list(findings)
    silenced = {
        (rule, finding.tensor, rank)
        for finding in findings
        for rule in _SILENCES.get(finding.rule, ())
        for rank in finding.ranks
        if finding.tensor
    }
    left = [f for f in findings if not any((f.rule, f.tensor, rank) in silenced for rank in f.ranks)]
    for rank in context.ranks:
        left = _without_lost_readers(rank, left, context)
    return left


def _without_lost_readers(rank: Rank, findings: list[Finding], context: Context) -> list[Finding]:
    """Drops what a tensor shows whose reader reads an uninitialised one instead, which then says so."""
    mine = [finding for finding in findings if finding.ranks == (rank.number,) and finding.tensor]
    usurpers = [finding for finding in mine if finding.rule == "MK103"]
    if not usurpers:
        return findings
    consumption = context.consumption(rank)
    explained: set[int] = set()
    belongs: dict[int, str] = {}
    for finding in mine:
        if finding.rule in _OF_LOST_READERS and finding.tensor:
            for usurper in usurpers:
                if usurper.tensor and _displaces(usurper.tensor, finding.tensor, rank, consumption):
                    explained.add(id(finding))
                    belongs.setdefault(id(usurper), finding.tensor)
                    break
    return [
        _with_hint(finding, belongs.get(id(finding))) for finding in findings if id(finding) not in explained
    ]


def _with_hint(finding: Finding, tensor: str | None) -> Finding:
    if tensor is None:
        return finding
    hint = f"{finding.message}; {tensor}, which no task reads, probably belongs there"
    return replace(finding, message=hint)


def _displaces(usurper: str, tensor: str, rank: Rank, consumption: Consumption) -> bool:
    """Whether `usurper` stands where `tensor` belongs.

    The slots say so if those that hold it hold the other members of the tensor's family or are
    named for it; two buffers of equal size, one read and never written, the other written and
    never read, say so by themselves.
    """
    slots = _reading_slots(consumption, usurper)
    siblings = (name for name in rank.declarations if family_of(name) == family_of(tensor) and name != tensor)
    if any(_names(slots) & _names(_reading_slots(consumption, name)) for name in siblings):
        return True
    if any(slot.role and _named_for(tensor, slot.role.name) for slot in slots):
        return True
    size = rank.declarations[tensor].bytes
    return consumption.is_written(tensor) and size is not None and size == rank.declarations[usurper].bytes


def _reading_slots(consumption: Consumption, tensor: str) -> list[SlotKey]:
    return [slot for slot in consumption.of(tensor).slots if consumption.accesses[slot].reads]


def _names(slots: list[SlotKey]) -> set[SlotName]:
    return {(slot.operator.type_name, slot.side, slot.index) for slot in slots}


def _named_for(tensor: str, role: str) -> bool:
    """Whether the words of a slot's role stand in the tensor's name: `cos` in `rope_cos`."""
    return len(role) > 2 and f"_{role}_" in f"_{re.sub(r'[^a-z0-9]+', '_', tensor.lower())}_"
