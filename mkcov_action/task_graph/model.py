"""The task graph of one rank: interned operands, task columns, events."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

NULL_TENSOR = "nullptr"
"""The base_ptr of a slot that holds no tensor (mirage src/kernel/runtime.cc, print_task_graph)."""

INVALID_EVENT = 0x7FFFFFFFFFFFFFFE
"""The event id that stands for none (runtime_header.h); its tag bits are set, so test it first."""

EVENT_TYPES: Mapping[int, str] = {
    900: "EVENT_EMPTY",
    901: "EVENT_LAUNCH_TASKS",
    902: "EVENT_LAUNCH_MASSIVE_TASKS",
    903: "EVENT_LAUNCH_DEPENDENT_TASKS",
    910: "EVENT_END_OF_TASK_GRAPH",
    911: "EVENT_TERMINATION",
    999: "EVENT_INVALID",
}
"""The names of `event_type` (runtime_header.h, EventType): the same in every version that wrote such files."""

METADATA_FIELDS = ("request_id", "kv_idx", "expert_offset", "task_offset", "merge_task_offset")


class Operand(NamedTuple):
    """One tile of a tensor as a task names it.

    `offset` is in bytes, `dims` (the tile) and `strides` (of the whole tensor) in elements.
    """

    tensor: str
    offset: int
    data_type: int
    dims: tuple[int, ...]
    strides: tuple[int, ...]


TaskClass = tuple[int, int, int, int]
"""Task type, variant, and the tensor lists of inputs and outputs."""


@dataclass(frozen=True, slots=True)
class Events:
    """The event table as columns; the index is the event's position, task ranges are half-open."""

    event_type: array[int]
    num_triggers: array[int]
    first_task_id: array[int]
    last_task_id: array[int]

    def __len__(self) -> int:
        return len(self.event_type)


@dataclass(frozen=True, slots=True)
class TaskGraph:
    """The task graph of one rank. Everything per task is a column; task N is index N.

    `inputs[t]` and `outputs[t]` are indices into `operand_lists`, whose members index `operands`.
    `tensor_list_of[i]` is the index in `tensor_lists` of the names of list i: few, as tiles of one
    layer name the same tensors.
    `metadata` holds a column for each of METADATA_FIELDS that the file's generation writes.
    `unknown_keys` are the keys that no known generation writes, as `task.is_tail_task`, with the
    1-based line where each first stands.
    """

    operands: tuple[Operand, ...]
    operand_lists: tuple[tuple[int, ...], ...]
    tensor_lists: tuple[tuple[str, ...], ...]
    tensor_list_of: array[int]
    task_type: array[int]
    variant_id: array[int]
    inputs: array[int]
    outputs: array[int]
    trigger_event: array[int]
    dependent_event: array[int]
    metadata: Mapping[str, array[int]]
    events: Events
    first_tasks: tuple[int, ...]
    unknown_keys: Mapping[str, int] = field(default_factory=dict)
    _counted: dict[str, Counter[TaskClass]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def __len__(self) -> int:
        return len(self.task_type)

    def classes(self) -> Counter[TaskClass]:
        """How many tasks share type, variant, and the tensor lists of their inputs and outputs.

        Some thousand in the largest graph: what does not depend on tiles or events goes by these.
        """
        if "classes" not in self._counted:
            name = self.tensor_list_of.__getitem__
            inputs, outputs = map(name, self.inputs), map(name, self.outputs)
            rows = zip(self.task_type, self.variant_id, inputs, outputs, strict=True)
            self._counted["classes"] = Counter(rows)
        return self._counted["classes"]

    def own_classes(self) -> Counter[TaskClass]:
        """The classes of tasks 0 and 1, which are the runtime's own."""
        name = self.tensor_list_of.__getitem__
        return Counter(
            (self.task_type[task], self.variant_id[task], name(self.inputs[task]), name(self.outputs[task]))
            for task in range(min(2, len(self)))
        )

    @property
    def rank(self) -> int | None:
        """The rank that the file was generated for: the gpu bits of task 1's trigger event."""
        if len(self) < 2 or self.trigger_event[1] == INVALID_EVENT:
            return None
        return self.trigger_event[1] >> 32 & 0xFFFFFF
