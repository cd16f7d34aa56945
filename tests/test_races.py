"""The sets on which races rest are those of the unordered accesses, which are held to brute force."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from mkcov_action.analyses.happens_before import HappensBefore, happens_before_of
from mkcov_action.analyses.races import Order, RaceKind, conflicts, race_report, unordered
from mkcov_action.analyses.unordered import memory_of
from tests.small_worlds import World, many_worlds, worlds
from tests.test_unordered import populated, straighten


@given(worlds(broken=False), st.integers(0, 2**32))
@many_worlds
def test_before_after_and_overlap_are_those_of_the_memory(world: World, seed: int) -> None:
    straighten(world)
    small = world.ranks[0]
    one = populated(small, world, seed)
    order = happens_before_of(one.events)
    if not isinstance(order, HappensBefore):
        event("no order")
        return
    ours = Order(one.accesses, order, one.operators.calls)
    for name in one.accesses.tensors:
        memory, tensor = memory_of(one.accesses, name, order), ours.tensor(name)
        if tensor.overlapping is None or not memory.exact:
            continue
        for index, entry in enumerate(memory.entries):
            assert tensor.before(index) == memory.before(index)
            assert tensor.after(index) == memory.after(index)
            assert tensor.overlapping[entry.access.region] == memory.overlapping(index)
    report = race_report(ours)
    event(f"reads: {bool(report.reads)}, conflicts: {bool(report.conflicts)}")
    # A read may even come before the write that it should see; all else is unordered.
    assert {race.tensor for race in conflicts(ours).races} <= unordered(ours).keys()
    for race in report.conflicts:
        assert race.kind is not RaceKind.READ_OF_LAST_WRITE
