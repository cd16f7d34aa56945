"""Who references each tensor, and who really reads and writes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mkcov_action.analyses.dispatch import Dispatch, dispatch_of
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Branch
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import NULL_TENSOR
from mkcov_action.task_types import TASK_TYPES, Slot, SlotUse


class Access(StrEnum):
    """What the kernel does through a slot, as far as the two files tell."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # read and written in place
    ACCUMULATE = "accumulate"  # added into
    MAYBE_WRITE = "maybe-write"  # read, and possibly written: a type without a role entry
    IGNORED = "ignored"  # the body never names the slot
    DUMMY = "dummy"  # the slot only draws an edge
    SKIPPED = "skipped"  # no code runs for the operator

    @property
    def reads(self) -> bool:
        """Whether the tensor's bytes are read (an accumulation reads only to write)."""
        return self in _READING

    @property
    def writes(self) -> bool:
        """Whether the tensor's bytes are surely written."""
        return self in _WRITING


_READING = frozenset({Access.READ, Access.UPDATE, Access.MAYBE_WRITE})
_WRITING = frozenset({Access.WRITE, Access.UPDATE, Access.ACCUMULATE})
_OF_USE = {
    SlotUse.READ: Access.READ,
    SlotUse.WRITE: Access.WRITE,
    SlotUse.UPDATE: Access.UPDATE,
    SlotUse.ACCUMULATE: Access.ACCUMULATE,
    SlotUse.DUMMY: Access.DUMMY,
}


class Side(StrEnum):
    """Whether a slot is one of a task's inputs or one of its outputs."""

    INPUT = "input"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True, order=True)
class SlotKey:
    """A slot of an operator: where a tensor can sit."""

    operator: Operator
    side: Side
    index: int

    @property
    def role(self) -> Slot | None:
        """What the slot is for; None for a type or a slot without a role entry."""
        role = TASK_TYPES.get(self.operator.type_name)
        slots = () if role is None else role.inputs if self.side is Side.INPUT else role.outputs
        return slots[self.index] if self.index < len(slots) else None

    def __str__(self) -> str:
        role = f" ({self.role.name})" if self.role else ""
        return f"{self.side} {self.index}{role} of {self.operator}"


@dataclass(slots=True)
class Usage:
    """The references to one tensor in one rank.

    `input_refs` and `output_refs` count every task input or output of that name, used or not;
    `consumers` and `producers` split them by task type number; `slots` by slot.
    """

    input_refs: int = 0
    output_refs: int = 0
    consumers: Counter[int] = field(default_factory=Counter)
    producers: Counter[int] = field(default_factory=Counter)
    slots: Counter[SlotKey] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Consumption:
    """All usages of one rank, the access that each occupied slot stands for, and which operators run."""

    usages: Mapping[str, Usage]
    accesses: Mapping[SlotKey, Access]
    dispatch: Mapping[Operator, Dispatch] = field(default_factory=dict)

    @property
    def types_without_role(self) -> tuple[str, ...]:
        """The names of the task types whose slots have no known role, sorted."""
        names = {slot.operator.type_name for slot in self.accesses}
        return tuple(sorted(names - TASK_TYPES.keys()))

    def of(self, tensor: str) -> Usage:
        """The usage of a tensor; an empty one if no task names it."""
        return self.usages.get(tensor) or Usage()

    def slots(self, tensor: str, *accesses: Access) -> list[SlotKey]:
        """The slots through which a tensor is accessed in one of these ways, sorted."""
        return sorted(slot for slot in self.of(tensor).slots if self.accesses[slot] in accesses)

    def is_read(self, tensor: str) -> bool:
        """Whether a task reads the tensor through a used slot."""
        return any(self.accesses[slot].reads for slot in self.of(tensor).slots)

    def is_written(self, tensor: str) -> bool:
        """Whether a task surely writes the tensor through a used slot."""
        return any(self.accesses[slot].writes for slot in self.of(tensor).slots)

    def may_be_written(self, tensor: str) -> bool:
        """Whether a task of unknown role might write the tensor."""
        return any(self.accesses[slot] is Access.MAYBE_WRITE for slot in self.of(tensor).slots)

    def is_touched(self, tensor: str) -> bool:
        """Whether a task reads or writes the tensor through a used slot."""
        return self.is_read(tensor) or self.is_written(tensor)

    def is_referenced(self, tensor: str) -> bool:
        """Whether any task names the tensor at all."""
        return tensor in self.usages


def consumption_of(rank: Rank) -> Consumption:
    """The consumption of an audited rank.

    Tasks that agree in type, variant and tensors are counted once, with their number.
    """
    sides: dict[tuple[int, int, int, Side], Counter[str]] = {}
    for (number, variant, *lists), tasks in rank.graph.classes().items():
        for side, tensors in zip(Side, lists, strict=True):
            for index, tensor in enumerate(rank.graph.tensor_lists[tensors]):
                sides.setdefault((number, variant, index, side), Counter())[tensor] += tasks
    usages: dict[str, Usage] = {}
    accesses: dict[SlotKey, Access] = {}
    dispatch = dispatch_of(rank)
    for (number, variant, index, side), counts in sides.items():
        slot = SlotKey(Operator(rank.type_name(number), variant), side, index)
        missing = dispatch[slot.operator] is Dispatch.MISSING
        accesses[slot] = Access.SKIPPED if missing else _access(rank, slot)
        for tensor, tasks in counts.items():
            if tensor != NULL_TENSOR:
                _count(usages.setdefault(tensor, Usage()), number, slot, tasks)
    return Consumption(usages, accesses, dispatch)


def _count(usage: Usage, number: int, slot: SlotKey, tasks: int) -> None:
    if slot.side is Side.INPUT:
        usage.input_refs += tasks
        usage.consumers[number] += tasks
    else:
        usage.output_refs += tasks
        usage.producers[number] += tasks
    usage.slots[slot] += tasks


def branch_of(rank: Rank, operator: Operator) -> Branch | None:
    """The dispatch branch of an operator, None where none is known."""
    dispatcher = rank.kernel.dispatcher if rank.kernel else None
    return dispatcher.branches.get(operator) if dispatcher else None


def _access(rank: Rank, slot: SlotKey) -> Access:
    role = slot.role
    if role is not None and role.use is SlotUse.DUMMY:
        return Access.DUMMY
    branch = branch_of(rank, slot.operator)
    if branch is not None:
        used = branch.inputs if slot.side is Side.INPUT else branch.outputs
        if used is not None and slot.index not in used:
            return Access.IGNORED
    if role is not None:
        return _OF_USE[role.use]
    if slot.side is Side.OUTPUT:
        return Access.WRITE
    if branch is not None and slot.index in branch.const_inputs:
        return Access.READ
    return Access.MAYBE_WRITE
