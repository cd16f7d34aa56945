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
    kinds = dict.fromkeys(zip(types[_OWN:], variants[_OWN:], strict=True))
    own = {Operator(rank.type_name(types[task]), variants[task]) for task in range(min(_OWN, len(types)))}
    dispatcher = rank.kernel.dispatcher if rank.kernel else None
    certain = absences_of(rank, dispatcher).certain if dispatcher and dispatcher.complete else frozenset()
    judged = {
        operator: _judged(operator, dispatcher, absent=number in certain)
        for operator, number in (
            (Operator(rank.type_name(number), variant), number) for number, variant in kinds
        )
    }
    return dict.fromkeys(own, Dispatch.RUNS) | judged


def _judged(operator: Operator, dispatcher: Dispatcher | None, *, absent: bool) -> Dispatch:
    if operator.type_name in WORKER_LOOP:
        return Dispatch.MISSING  # the worker ends or begins anew: nothing of the model is done
    if dispatcher is None:
        return Dispatch.UNKNOWN
    if operator in dispatcher.branches:
        return Dispatch.RUNS
    known = absent or operator.type_name in dispatcher.type_names
    return Dispatch.MISSING if known and dispatcher.complete else Dispatch.UNKNOWN


def absences_of(rank: Rank, dispatcher: Dispatcher) -> Absences:
    """The task types of an audited rank that no branch of its complete dispatcher names."""
    return absences(rank.type_names or {}, slot_counts(rank.graph), dispatcher.type_names)


_OWN = 2  # tasks 0 and 1 are the runtime's: the worker's loop handles them, whatever they claim to be
