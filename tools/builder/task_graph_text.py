"""The task graph's text, a piece at a time: what `json.dumps(graph, indent=2, sort_keys=True)` gives.

All that repeats from task to task of an operator is laid out once, as a template, so that a million
tasks take seconds and no memory to speak of.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from tools.builder.metadata import read_rule
from tools.builder.operators import Operator, Placed
from tools.builder.plan import INVALID_EVENT, Event, Plan, Segment
from tools.builder.tensors import DTYPES

TERMINATE, BEGIN = 0, 10

_TASK = """    {
      "dependent_event": %d,
      "expert_offset": %d,
      "inputs": INPUTS,
      "kv_idx": %d,
      "merge_task_offset": %d,
      "outputs": OUTPUTS,
      "request_id": %d,
      "task_offset": %d,
      "task_type": TYPE,
      "trigger_event": %d,
      "variant_id": VARIANT
    }"""

_TENSOR = """        {
          "base_ptr": NAME,
          "data_type": TYPE,
          "dims": DIMS,
          "offset": OFFSET,
          "strides": STRIDES
        }"""

_EVENT = """    {
      "event_type": %d,
      "first_task_id": %d,
      "last_task_id": %d,
      "num_triggers": %d
    }"""


def task_graph_pieces(plan: Plan) -> Iterator[str]:
    """The document in order, in pieces of at most some hundred kilobytes."""
    yield '{\n  "all_events": [\n'
    yield from _batches(map(_event, plan.events))
    yield '\n  ],\n  "all_tasks": [\n'
    yield from _batches(_all_tasks(plan))
    yield f'\n  ],\n  "first_tasks": {_numbers(plan.first_tasks, 4) if plan.first_tasks else "null"}\n}}'


def _batches(items: Iterator[str], size: int = 256) -> Iterator[str]:
    batch: list[str] = []
    separator = ""
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield separator + ",\n".join(batch)
            separator = ",\n"
            batch.clear()
    if batch:
        yield separator + ",\n".join(batch)


def _event(event: Event) -> str:
    kind, triggers, first, last = event
    return _EVENT % (kind, first, last, triggers)


def _all_tasks(plan: Plan) -> Iterator[str]:
    yield _runtime_task(TERMINATE, INVALID_EVENT)
    yield _runtime_task(BEGIN, plan.event_id(1))
    for segment in plan.segments:
        yield from _segment(plan, segment)


def _runtime_task(number: int, trigger: int) -> str:
    template = _TASK.replace("INPUTS", "null").replace("OUTPUTS", "null")
    template = template.replace("TYPE", str(number)).replace("VARIANT", "0")
    return template % (INVALID_EVENT, -1, -1, -1, -1, -1, trigger)


def _segment(plan: Plan, segment: Segment) -> Iterator[str]:
    operator = segment.operator
    template = _template(operator)
    metadata = read_rule(operator.metadata, operator.grid)
    inputs = [(slot.offset, *slot.step) for slot in operator.inputs if slot.tensor]
    outputs = [(slot.offset, *slot.step) for slot in operator.outputs if slot.tensor]
    targets = operator.targets if operator.is_put else (plan.rank,)
    for tile, block in operator.blocks(segment.start, segment.stop):
        x, y, z = block
        request, kv, merge, word = metadata(block)
        reads = [base + x * dx + y * dy + z * dz for base, dx, dy, dz in inputs]
        writes = [base + x * dx + y * dy + z * dz for base, dx, dy, dz in outputs]
        for target in targets:
            trigger = plan.trigger(operator, tile, target)
            yield template % (
                segment.dependent, word, *reads, kv, merge, *writes, request, word, trigger
            )  # fmt: skip


def _template(operator: Operator) -> str:
    # The slots come last: their names may hold any of the words that stand for the rest.
    return (
        _TASK.replace("TYPE", str(operator.number))
        .replace("VARIANT", str(operator.variant))
        .replace("OUTPUTS", _slots(operator.outputs))
        .replace("INPUTS", _slots(operator.inputs), 1)
    )


def _slots(slots: Sequence[Placed]) -> str:
    return "[\n" + ",\n".join(map(_slot, slots)) + "\n      ]" if slots else "null"


def _slot(slot: Placed) -> str:
    name, number, offset = "nullptr", 999, "0"
    strides: tuple[int, ...] = ()
    if slot.tensor:
        name, number, offset = slot.tensor.name, DTYPES[slot.tensor.dtype][0], "%d"
        strides = slot.tensor.strides
    return (
        _TENSOR.replace("TYPE", str(number))
        .replace("DIMS", _numbers(slot.dims, 12))
        .replace("OFFSET", offset)
        .replace("STRIDES", _numbers(strides, 12))
        .replace("NAME", json.dumps(name, ensure_ascii=False).replace("%", "%%"))
    )


def _numbers(values: Sequence[int], indent: int) -> str:
    if not values:
        return "[]"
    space = " " * indent
    return "[\n" + ",\n".join(f"{space}{value}" for value in values) + f"\n{space[:-2]}]"
