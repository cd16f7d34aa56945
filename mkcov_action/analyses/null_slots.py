"""Where tasks hold nullptr, and which optional steps of attention their kernels then take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mkcov_action.analyses.consumption import Access, Consumption, Side, SlotKey
from mkcov_action.analyses.dispatch import Dispatch
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Branch
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import NULL_TENSOR
from mkcov_action.task_types import TASK_TYPES

# The two optional steps in the order in which bodies print their flags, and where these stand
# (mirage src/kernel/task_register.cc: behind the request or, in older attention, the step).
_STEPS = ("qk_norm", "rope")
_BEFORE_FLAGS = frozenset({"metadata:request_id", "config:step"})
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """The tasks of one operator that hold nullptr in the same slots.

    `nulls` are the used slots that hold it; empty where none does.
    """

    operator: Operator
    nulls: frozenset[SlotKey]


def occupancies_of(rank: Rank, consumption: Consumption) -> Mapping[Occupancy, int]:
    """For each operator that has code, how many tasks leave which used slots null."""
    null_places = [
        [place for place, name in enumerate(names) if name == NULL_TENSOR]
        for names in rank.graph.tensor_lists
    ]
    found: Counter[Occupancy] = Counter()
    for (number, variant, inputs, outputs), tasks in rank.graph.classes().items():
        operator = Operator(rank.type_name(number), variant)
        if consumption.dispatch[operator] is Dispatch.MISSING:
            continue
        slots = [SlotKey(operator, Side.INPUT, place) for place in null_places[inputs]]
        slots += [SlotKey(operator, Side.OUTPUT, place) for place in null_places[outputs]]
        used = (slot for slot in slots if consumption.accesses[slot] not in (Access.IGNORED, Access.DUMMY))
        found[Occupancy(operator, frozenset(used))] += tasks
    return found


def step_slots(operator: Operator) -> Mapping[str, tuple[SlotKey, ...]]:
    """The slots that each optional step of an operator takes: null together or not at all."""
    role = TASK_TYPES.get(operator.type_name)
    steps: dict[str, list[SlotKey]] = {}
    for index, slot in enumerate(role.inputs if role else ()):
        if slot.pair:
            steps.setdefault(slot.pair, []).append(SlotKey(operator, Side.INPUT, index))
    return {step: tuple(slots) for step, slots in steps.items()}


def step_flags(branch: Branch | None) -> Mapping[str, bool]:
    """Whether a body takes each optional step; empty where its flags are not where they should be."""
    tokens = branch.tokens if branch else ()
    for place, token in enumerate(tokens):
        flags = tokens[place + 1 : place + 1 + len(_STEPS)]
        if token in _BEFORE_FLAGS and len(flags) == len(_STEPS) and set(flags) <= _FLAGS.keys():
            return {step: _FLAGS[flag] for step, flag in zip(_STEPS, flags, strict=True)}
    return {}
