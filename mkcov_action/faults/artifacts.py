"""Artifacts to be edited: kernel text and decoded task graph, as a generator's bug would leave them."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mkcov_action.task_graph import INVALID_EVENT
from mkcov_action.task_types import TASK_TYPE_NUMBERS, TASK_TYPES, SlotUse

Task = dict[str, Any]
Event = dict[str, Any]
Tensor = dict[str, Any]

TAG = 0x1E00 << 48
_BRANCH = re.compile(
    r"^[^\S\n]*(?:else )?if \(task_desc->task_type == (\w+) && task_desc->variant_id == (\d+)\) \{\n",
    re.MULTILINE,
)


@dataclass(slots=True)
class RankArtifacts:
    """Both halves of one rank; task and event numbers are indices, and what inserts or drops one renumbers."""

    number: int
    kernel: str
    document: dict[str, Any]

    @property
    def tasks(self) -> list[Task]:
        """All tasks; 0 and 1 are the runtime's own."""
        tasks: list[Task] = self.document["all_tasks"]
        return tasks

    @property
    def events(self) -> list[Event]:
        """The event table."""
        events: list[Event] = self.document["all_events"]
        return events

    def is_known(self, task: int) -> bool:
        """Whether a task's type is one whose slots have known roles, by the generator's numbers."""
        return self.tasks[task]["task_type"] in TASK_TYPE_NUMBERS

    def exact(self, task: int, side: str) -> list[Tensor]:
        """A task's tensors on one side whose tiles are exactly what its kernel accesses."""
        role = TASK_TYPES.get(TASK_TYPE_NUMBERS.get(self.tasks[task]["task_type"], ""))
        slots = () if role is None else role.inputs if side == "inputs" else role.outputs
        tensors = self.tasks[task][side] or ()
        return [
            tensor
            for tensor, slot in zip(tensors, slots, strict=False)
            if slot.exact and slot.use is not SlotUse.DUMMY
        ]

    def operands(self, side: str = "inputs") -> list[Tensor]:
        """The tensors of one side of all tasks."""
        return [tensor for task in self.tasks for tensor in task[side] or ()]

    def references(self, side: str) -> Counter[str]:
        """How many task operands of one side name each tensor."""
        return Counter(tensor["base_ptr"] for tensor in self.operands(side))

    def declared(self, form: str) -> list[str]:
        """The names declared in one form: `char` for attached and shuffled, `void` for buffers."""
        return re.findall(rf"^  {form} \*(\w+)(?: =|;)", self.kernel, re.MULTILINE)

    def rename(self, old: str, new: str, side: str) -> None:
        """Points every operand of one side that names a tensor at another."""
        for tensor in self.operands(side):
            if tensor["base_ptr"] == old:
                tensor["base_ptr"] = new

    def event_of(self, event_id: int) -> int | None:
        """The position of a local event, None for a tagged one, none, or one behind the table."""
        position = event_id & 0xFFFFFFFF
        return (
            None if event_id == INVALID_EVENT or event_id >> 48 or position >= len(self.events) else position
        )

    def triggering(self, event: int) -> list[int]:
        """The tasks that trigger a local event."""
        return [
            index for index, task in enumerate(self.tasks) if self.event_of(task["trigger_event"]) == event
        ]

    def waiting(self, event: int) -> list[int]:
        """The tasks that wait for a local event."""
        return [
            index for index, task in enumerate(self.tasks) if self.event_of(task["dependent_event"]) == event
        ]

    def drop_task(self, task: int) -> None:
        """Takes a task out and renumbers the ranges of the events, as if it had never been generated."""
        del self.tasks[task]
        for event in self.events:
            for bound in ("first_task_id", "last_task_id"):
                event[bound] -= event[bound] > task
        self._renumber_first(task, -1)

    def insert_task(self, place: int, task: Task) -> None:
        """Puts a task before the one of that number and renumbers; an event's range takes it in at its end."""
        self.tasks.insert(place, task)
        for event in self.events:
            if event["last_task_id"] > event["first_task_id"]:
                event["first_task_id"] += event["first_task_id"] >= place
                event["last_task_id"] += event["last_task_id"] >= place
        self._renumber_first(place, 1)

    def _renumber_first(self, place: int, by: int) -> None:
        first = self.document.get("first_tasks") or []
        self.document["first_tasks"] = [
            task + by if task >= max(place, 3) else task for task in first
        ] or None

    def state_ranges(self) -> None:
        """Writes the span of the tasks that wait for it into each event between the first two and the last."""
        spans: dict[int, tuple[int, int]] = {}
        for index, task in enumerate(self.tasks):
            if task["dependent_event"] != INVALID_EVENT:
                event = task["dependent_event"] & 0xFFFFFFFF
                spans[event] = spans.get(event, (index, 0))[0], index + 1
        for place, event in enumerate(self.events[2:-1], start=2):
            event["first_task_id"], event["last_task_id"] = spans.get(place, (0, 0))

    def branches(self) -> list[tuple[str, int, int, int]]:
        """The dispatcher's branches: type, variant, and where their text starts and ends."""
        heads = list(_BRANCH.finditer(self.kernel))
        ends = [*(head.start() for head in heads[1:]), self.kernel.rindex("}", 0, self.kernel.rindex("}"))]
        return [
            (head[1], int(head[2]), head.start(), self.kernel.rindex("}", head.end(), end + 1) + 1)
            for head, end in zip(heads, ends, strict=True)
        ]

    def slots_by_kind(self, pattern: str) -> dict[tuple[int, int], set[int]]:
        """The slots that each branch names in a way that the pattern finds, by task type number and variant.

        The i-th type name of the dispatcher belongs to the i-th smallest number in the graph.
        """
        branches = self.branches()
        names = list(dict.fromkeys(type_name for type_name, _, _, _ in branches))
        numbers = sorted({task["task_type"] for task in self.tasks[2:]})
        if len(names) != len(numbers):
            return {}
        number_of = dict(zip(names, numbers, strict=True))
        return {
            (number_of[type_name], variant): set(map(int, re.findall(pattern, self.kernel[start:end])))
            for type_name, variant, start, end in branches
        }

    def write(self, directory: Path) -> None:
        """Writes both files under the names that the demos give them."""
        (directory / f"kernel_{self.number}.cu").write_text(
            self.kernel, encoding="utf-8", errors="surrogateescape"
        )
        text = json.dumps(self.document, indent=2)
        (directory / f"task_graph_{self.number}.json").write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Site:
    """Where to plant: all ranks of a graph, the one that is edited, and the dice that choose the place."""

    ranks: Sequence[RankArtifacts]
    rank: RankArtifacts
    dice: random.Random

    def one_of(self, choices: Sequence[Any] | Iterator[Any]) -> Any:
        """One of the choices, None where there is none."""
        found = list(choices)
        return self.dice.choice(found) if found else None
