"""Which operators have code: a branch of the dispatcher, or a place in the worker's own loop."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Dispatcher
from mkcov_action.loader import slot_counts
from mkcov_action.megakernel import Rank
from mkcov_action.task_types import WORKER_LOOP, Absences, absences


class Dispatch(StrEnum):
    """What becomes of an operator's tasks when a worker takes one."""

    RUNS = "runs"
    MISSING = "missing"  # a silent no-op, which waits for its event and fires its event
    UNKNOWN = "unknown"  # the dispatcher's form is not known, or a branch of unclear name may be this one's


def dispatch_of(rank: Rank) -> Mapping[Operator, Dispatch]:
    """For each operator of an audited rank's graph whether it has code.

    The dispatcher has no final else (mirage src/kernel/runtime.cc, print_task_graph): what no branch
    names does nothing.
    """
    types, variants = rank.graph.task_type, rank.graph.variant_id
    numbers = dict.fromkeys(zip(types[_OWN:], variants[_OWN:], strict=True))
    operators = {Operator(rank.type_name(number), variant): number for number, variant in numbers}
    own = {Operator(rank.type_name(types[task]), variants[task]) for task in range(min(_OWN, len(types)))}
    return dict.fromkeys(own, Dispatch.RUNS) | _judged(rank, operators)


def absences_of(rank: Rank, dispatcher: Dispatcher) -> Absences:
    """The task types of an audited rank that no branch of its complete dispatcher names."""
    return absences(rank.type_names or {}, slot_counts(rank.graph), dispatcher.type_names)


_OWN = 2  # tasks 0 and 1 are the runtime's: the worker's loop handles them whatever they claim to be


def _judged(rank: Rank, operators: Mapping[Operator, int]) -> dict[Operator, Dispatch]:
    """The operators of the model with their type numbers, each judged."""
    dispatcher = rank.kernel.dispatcher if rank.kernel else None
    if dispatcher is None or not dispatcher.complete:
        branches = dispatcher.branches if dispatcher else {}
        return {
            operator: Dispatch.RUNS
            if operator in branches or operator.type_name in WORKER_LOOP
            else Dispatch.UNKNOWN
            for operator in operators
        }
    certain = absences_of(rank, dispatcher).certain
    return {
        operator: Dispatch.RUNS
        if operator in dispatcher.branches or operator.type_name in WORKER_LOOP
        else Dispatch.MISSING
        if number in certain or operator.type_name in dispatcher.type_names
        else Dispatch.UNKNOWN
        for operator, number in operators.items()
    }
