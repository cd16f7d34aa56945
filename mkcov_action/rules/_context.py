"""What a rule may look at: one megakernel, the settings, and the analyses that rules share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mkcov_action.analyses.accesses import Accesses, accesses_of
from mkcov_action.analyses.consumption import Consumption, consumption_of
from mkcov_action.analyses.events import EventGraph, events_of, is_tagged, joined
from mkcov_action.analyses.happens_before import HappensBefore, NoOrder, happens_before_of
from mkcov_action.analyses.null_slots import Occupancy, occupancies_of
from mkcov_action.analyses.operators import Operators, operators_of
from mkcov_action.analyses.races import RaceReport, race_report
from mkcov_action.analyses.startable import Startable, startable_of
from mkcov_action.analyses.uncovered import UncoveredReport, uncovered_report
from mkcov_action.config import Config
from mkcov_action.kernel_source import Origin
from mkcov_action.megakernel import Megakernel, Rank
from mkcov_action.task_types import PUTS, TASK_TYPES

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Context:
    """What a rule may look at: one megakernel and the settings. Analyses are made once, on demand."""

    megakernel: Megakernel
    config: Config
    _made: dict[tuple[Hashable, int], Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, megakernel: Megakernel, config: Config, ranks: Mapping[int, Mapping[Hashable, Any]]
    ) -> Context:
        """A context that takes over what was prepared of each rank, by rank number."""
        made = {
            (name, rank.number): made
            for rank in megakernel.audited_ranks
            for name, made in ranks.get(rank.number, {}).items()
        }
        return cls(megakernel, config, made)

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """The ranks whose two halves could be read."""
        return self.megakernel.audited_ranks

    def consumption(self, rank: Rank) -> Consumption:
        """Who reads and writes what in an audited rank."""
        return self._once(("consumption", rank.number), lambda: consumption_of(rank))

    def occupancies(self, rank: Rank) -> Mapping[Occupancy, int]:
        """How many tasks of each operator leave which used slots null, in an audited rank."""
        return self._once(("occupancies", rank.number), lambda: occupancies_of(rank, self.consumption(rank)))

    def operators(self, rank: Rank) -> Operators:
        """The layer calls of an audited rank."""
        return self._once(("operators", rank.number), lambda: operators_of(rank))

    def events(self, rank: Rank) -> EventGraph:
        """Who triggers and who awaits each event of an audited rank, by itself."""
        return self._once(
            ("events", rank.number), lambda: events_of(rank.graph, rank.number, put_types=_put_types(rank))
        )

    def all_events(self) -> EventGraph:
        """The events of all audited ranks, where a put triggers the event of the rank that it targets."""
        return self._once(("events of all", -1), lambda: joined([self.events(rank) for rank in self.ranks]))

    def all_order(self) -> HappensBefore | NoOrder:
        """The order of the tasks of all audited ranks together; counts are taken as right."""
        events = self.all_events()
        return self._once(("order of all", -1), lambda: happens_before_of(events, forgiven=events.too_many))

    def startable(self, rank: Rank) -> Startable:
        """What can start in an audited rank by itself, its trigger counts as they are."""
        return self._once(("startable", rank.number), lambda: startable_of(self.events(rank)))

    def startable_once_counted(self, rank: Rank) -> Startable:
        """What could start if no event waited for more triggers than there are: wrong counts have a rule."""
        events = self.events(rank)
        # Nothing can trigger event 0: who waits for it waits for ever, whatever its count says.
        wrong = events.too_few.difference([events.starts[rank.number]])
        return self._once(
            ("startable once counted", rank.number), lambda: startable_of(events, forgiven=wrong)
        )

    def order(self, rank: Rank) -> HappensBefore | NoOrder:
        """The order of tasks in an audited rank by itself; each event counts as fired after all its producers."""
        events = self.events(rank)
        return self._once(("order", rank.number), lambda: happens_before_of(events, forgiven=events.too_many))

    def accesses(self, rank: Rank) -> Accesses:
        """Which bytes of what it writes an audited rank accesses, between which of its events."""
        return self._once(
            ("accesses", rank.number),
            lambda: accesses_of(rank, self.consumption(rank), self.operators(rank), self.events(rank)),
        )

    def races(self, rank: Rank) -> RaceReport | NoOrder:
        """What nothing orders in the memory of an audited rank by itself."""
        return self._once(("races", rank.number), lambda: self._races(rank))

    def _races(self, rank: Rank) -> RaceReport | NoOrder:
        order = self.order(rank)
        if isinstance(order, NoOrder):
            return order
        return race_report(self.accesses(rank), self.operators(rank).calls, order)

    def uncovered(self, rank: Rank) -> UncoveredReport:
        """What is read and not written of an audited rank's buffers, and what else is left out of them."""
        return self._once(("uncovered", rank.number), lambda: self._uncovered(rank))

    def _uncovered(self, rank: Rank) -> UncoveredReport:
        sizes = {
            name: declaration.bytes
            for name, declaration in rank.declarations.items()
            if declaration.bytes is not None
            and declaration.origin in (Origin.SCRATCH, Origin.SYMMETRIC)
            and declaration.copies_known
        }
        calls = self.operators(rank).calls
        return uncovered_report(self.accesses(rank), calls, rank.graph.operands, sizes, self.events(rank))

    def _once(self, key: tuple[Hashable, int], make: Callable[[], _Made]) -> _Made:
        if key not in self._made:
            self._made[key] = make()
        found: _Made = self._made[key]
        return found


def prepared(rank: Rank) -> Mapping[Hashable, Any]:
    """The analyses of an audited rank by itself that rules ask for, by name."""
    context = Context(Megakernel(graph="", ranks=(rank,)), Config())
    wanted = (
        context.consumption,
        context.events,
        context.startable,
        context.operators,
        context.races,
        context.uncovered,
    )
    for analysis in wanted:
        analysis(rank)
    # Accesses are as large as the graph: dearer to send than to make again, where ranks are compared.
    return {name: made for (name, _), made in context._made.items() if name != "accesses"}  # noqa: SLF001


def _put_types(rank: Rank) -> frozenset[int]:
    """The type numbers whose tasks signal other ranks: the known ones, and unknown ones with a tagged trigger."""
    pairs = set(zip(rank.graph.task_type, rank.graph.trigger_event, strict=True))
    types = {number: rank.type_name(number) for number, _ in pairs}
    tagged = {number for number, event in pairs if is_tagged(event)}
    return frozenset(
        number
        for number, name in types.items()
        if name in PUTS or (name not in TASK_TYPES and number in tagged)
    )
