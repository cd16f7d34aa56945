"""One cause, one finding: drops what a stronger finding explains."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from mkcov_action.analyses.consumption import Consumption, Side, SlotKey
from mkcov_action.finding import Finding, Place, Severity, family_of
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Rank
from mkcov_action.rules import Context
from mkcov_action.rules._wording import listed

# For the same tensor on the same rank.
_SILENCES = {
    "MK101": frozenset({"MK102", "MK105", "MK108", "MK109", "MK110"}),
    "MK102": frozenset({"MK105", "MK108"}),
    "MK401": frozenset({"MK404"}),
    "MK405": frozenset({"MK404"}),
}
# Whatever the rule and kind (any, where empty) says of a rank explains these on it.
_WHOLESALE = {
    ("MK008", ""): frozenset({"MK301", "MK302", "MK303", "MK304", "MK305", "MK306", "MK307"}),
    ("MK301", ""): frozenset({"MK402", "MK403"}),
    ("MK304", "event 0"): frozenset({"MK306", "MK307", "MK402", "MK403"}),
    ("MK307", "empty"): frozenset(
        {"MK101", "MK102", "MK103", "MK107", "MK109", "MK110", "MK111", "MK203", "MK302", "MK404"}
    ),
}
# What a rank shows that differs from the others, whatever the reason; and what only counts or orders signals.
_DIVERGENCE = frozenset({"MK501", "MK502", "MK504", "MK505"})
_OF_SIGNALS = frozenset({"MK502", "MK505"})
# Operands that stand where another tensor belongs: uninitialised memory, nullptr.
_USURPERS = frozenset({"MK103", "MK106", "MK202"})
# Those of them that name slots without a tensor.
_HOLES = frozenset({"MK106", "MK202"})
# What a tensor shows whose last reader took another operand by mistake.
_OF_LOST_READERS = frozenset({"MK101", "MK102", "MK109"})

# What names the operators that have no code.
_WITHOUT_CODE = frozenset({"MK201", "MK307"})
# What a tensor shows by who reads and writes it.
_OF_ACCESS = frozenset({"MK101", "MK102", "MK103", "MK105", "MK108", "MK109", "MK110", "MK404"})

SlotName = tuple[str, str, int]
"""A slot as all layers share it: type name, side and index."""


def without_explained(findings: Iterable[Finding], context: Context) -> list[Finding]:
    """The findings, each seen on one rank, that no stronger one of them explains."""
    findings = _without_wholesale(list(findings))
    silenced = {
        (rule, finding.tensor, rank)
        for finding in findings
        for rule in _SILENCES.get(finding.rule, ())
        for rank in finding.ranks
        if finding.tensor
    }
    left = [f for f in findings if not any((f.rule, f.tensor, rank) in silenced for rank in f.ranks)]
    for rank in context.ranks:
        left = _without_undispatched(rank, left, context)
        left = _without_lost_readers(rank, left, context)
        left = _without_blindness(rank, left)
    return _without_caused_divergence(left)


def _without_caused_divergence(findings: list[Finding]) -> list[Finding]:
    """Drops what only shows that ranks differ, where something else is wrong with one of them alone.

    That is the cause, and says more: the rank lacks a trigger, a branch, a tensor. (What is unordered or
    unawaited is no cause, but follows from one.) And where the ranks' graphs differ, so do the signals
    that one sends and the other counts.
    """
    shown: defaultdict[tuple[object, ...], set[int]] = defaultdict(set)
    for finding in findings:
        if finding.severity > Severity.NOTE and finding.rule < "MK4" and finding.rule != "MK306":
            shown[finding.rule, finding.tensor, finding.operator, finding.kind].update(finding.ranks)
    every = {rank for finding in findings for rank in finding.ranks}
    if any(ranks != every for ranks in shown.values()):
        return [finding for finding in findings if finding.rule not in _DIVERGENCE]
    divergent = {finding.kind for finding in findings if finding.rule == "MK501"}
    if not divergent:
        return findings
    other_graphs = not divergent.isdisjoint({"tasks", "events"})
    return [
        finding
        for finding in findings
        if finding.rule not in _OF_SIGNALS
        and not (other_graphs and (finding.rule, finding.kind) == ("MK503", "heap"))
    ]


def _without_wholesale(findings: list[Finding]) -> list[Finding]:
    """Drops what a whole rank shows for one reason: it is another rank's, or holds no model."""
    silenced = {
        (rule, rank)
        for finding in findings
        for rule in _WHOLESALE.get((finding.rule, finding.kind), ()) or _WHOLESALE.get((finding.rule, ""), ())
        for rank in finding.ranks
    }
    return [f for f in findings if not any((f.rule, rank) in silenced for rank in f.ranks)]


def _without_undispatched(rank: Rank, findings: list[Finding], context: Context) -> list[Finding]:
    """Drops what a tensor shows because tasks that should touch it have no code, which is said."""
    skipped = {f.operator for f in findings if f.rule in _WITHOUT_CODE and f.ranks == (rank.number,)} - {None}
    if not skipped:
        return findings
    usages = context.consumption(rank)
    return [
        finding
        for finding in findings
        if finding.rule not in _OF_ACCESS
        or finding.ranks != (rank.number,)
        or finding.tensor is None
        or skipped.isdisjoint(slot.operator for slot in usages.of(finding.tensor).slots)
    ]


def _without_blindness(rank: Rank, findings: list[Finding]) -> list[Finding]:
    """Attention is blind because the rotary tables, of which that is already said, reach no task."""
    unread = [f.tensor for f in findings if f.rule == "MK101" and f.ranks == (rank.number,) and f.tensor]
    if not any(_named_for(tensor, role) for tensor in unread for role in ("cos", "sin")):
        return findings
    return [f for f in findings if (f.rule, f.ranks) != ("MK107", (rank.number,))]


def _without_lost_readers(rank: Rank, findings: list[Finding], context: Context) -> list[Finding]:
    """Drops what a tensor shows whose reader takes another operand by mistake, which then says so."""
    mine = [finding for finding in findings if finding.ranks == (rank.number,)]
    usurpers = [finding for finding in mine if finding.rule in _USURPERS]
    if not usurpers:
        return findings
    consumption = context.consumption(rank)
    belong: dict[int, list[str]] = {}
    explained: set[int] = set()
    for finding in mine:
        if (
            finding.rule not in _OF_LOST_READERS
            or finding.tensor is None
            or finding.severity is Severity.NOTE
        ):
            continue  # what is a note is a result, or carried by the runtime: no reader was lost
        usurper = next((u for u in usurpers if _displaces(u, finding.tensor, rank, consumption)), None)
        # Without better evidence each hole accounts for one tensor that could stand there, in each layer.
        usurper = usurper or next(
            (
                u
                for u in usurpers
                if len(belong.get(id(u), ())) < _holes(u, rank, context)
                and _leaves_out(u, finding.tensor, rank, consumption)
            ),
            None,
        )
        if usurper is not None:
            explained.add(id(finding))
            belong.setdefault(id(usurper), []).append(finding.tensor)
    return [_with_hint(f, belong.get(id(f), [])) for f in findings if id(f) not in explained]


def _with_hint(finding: Finding, tensors: list[str]) -> Finding:
    if not tensors:
        return finding
    one = len(tensors) == 1
    hint = f"{listed(tensors)}, which no task reads, probably {'belongs' if one else 'belong'} there"
    places = tuple(Place(rank=finding.ranks[0], tensor=tensor, text=tensor) for tensor in tensors)
    return replace(finding, message=f"{finding.message}; {hint}", mentions=(*finding.mentions, *places))


def _displaces(usurper: Finding, tensor: str, rank: Rank, consumption: Consumption) -> bool:
    """Whether what `usurper` found stands where `tensor` belongs.

    Its slots say so if they hold the other members of the tensor's family elsewhere or are named
    for it; two buffers of equal size, one read and never written, the other written and never read,
    say so by themselves.
    """
    slots = _slots_of(usurper, consumption)
    siblings = (name for name in rank.declarations if family_of(name) == family_of(tensor) and name != tensor)
    if any(_names(slots) & _names(_reading_slots(consumption, name)) for name in siblings):
        return True
    if any(slot.role and _named_for(tensor, slot.role.name) for slot in slots):
        return True
    size = rank.declarations[tensor].bytes
    taken = rank.declarations.get(usurper.tensor or "")
    return taken is not None and size is not None and size == taken.bytes and consumption.is_written(tensor)


def _holes(usurper: Finding, rank: Rank, context: Context) -> int:
    """How many tensors may be missing: one a nullptr, one a slot and layer call where tasks lack slots."""
    if usurper.rule != "MK202":
        return 1
    calls = sum(call.operator == usurper.operator for call in context.operators(rank).calls)
    return calls * len(usurper.slots)


def _leaves_out(usurper: Finding, tensor: str, rank: Rank, consumption: Consumption) -> bool:
    """Whether a nullptr stands where such a tensor could: a weight or a buffer, as others there are."""
    if usurper.rule not in _HOLES or not usurper.slots:
        return False
    names = _names(_slots_of(usurper, consumption))
    holders = (name for name in rank.declarations if names & _names(_reading_slots(consumption, name)))
    attached = {_is_attached(rank, name) for name in holders}
    return not attached or _is_attached(rank, tensor) in attached


def _is_attached(rank: Rank, tensor: str) -> bool:
    return rank.declarations[tensor].origin in (Origin.MODEL, Origin.SHUFFLED)


def _slots_of(usurper: Finding, consumption: Consumption) -> list[SlotKey]:
    """The slots in which a finding's tensor, or its nullptr, stands instead of another tensor."""
    if usurper.tensor is not None:
        return _reading_slots(consumption, usurper.tensor)
    operator = usurper.operator
    return [SlotKey(operator, Side(side), index) for side, index in usurper.slots] if operator else []


def _reading_slots(consumption: Consumption, tensor: str) -> list[SlotKey]:
    return [slot for slot in consumption.of(tensor).slots if consumption.accesses[slot].reads]


def _names(slots: list[SlotKey]) -> set[SlotName]:
    return {(slot.operator.type_name, slot.side, slot.index) for slot in slots}


def _named_for(tensor: str, role: str) -> bool:
    """Whether the words of a slot's role stand in the tensor's name: `cos` in `rope_cos`."""
    return len(role) > 2 and f"_{role}_" in f"_{re.sub(r'[^a-z0-9]+', '_', tensor.lower())}_"
