"""What is unordered among accesses: the same as task by task, on small graphs and on real ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from mkcov_action.analyses import byte_ranges
from mkcov_action.analyses.accesses import TileAccess
from mkcov_action.analyses.events import joined
from mkcov_action.analyses.happens_before import HappensBefore, happens_before_of, members
from mkcov_action.analyses.races import _same_of_own_call as same_of_own_call
from mkcov_action.analyses.unordered import Memory, memories_across, memory_of
from mkcov_action.task_graph import Operand
from tests.small_accesses import (
    DEEPSEEK,
    OPERANDS,
    UNKNOWN,
    WRITING,
    Analysed,
    Key,
    analysed,
    by_task,
    bytes_by_hand,
    collapsed,
    keys_of,
    rank_with,
    real,
    with_operands,
)
from tests.small_worlds import (
    INVALID,
    PUT,
    Node,
    SmallRank,
    SmallTask,
    Truth,
    World,
    many_worlds,
    position,
    worlds,
)
from tests.some_ranks import QWEN, TWO_RANKS
from tests.test_happens_before import closure

POOL = (0, 1, 3, 4, 5, 11, 12, 22)  # operands of x: bytes that meet here and there
_NUMBERS = st.integers(0, 1 << 40)


@dataclass(frozen=True, eq=False)
class Placed:
    """An access with its tasks, its bytes, and the rank in whose memory these are."""

    key: Key
    rank: int
    tasks: list[Node]
    lands_on: int
    touched: set[int] | None


def populated(small: SmallRank, world: World, seed: int) -> Analysed:
    """A rank of a world whose tasks hold tiles of few tensors, as the seed says."""
    graph = small.graph()
    lists: list[tuple[int, ...]] = [()]
    inputs, outputs = [0, 0], [0, 0]
    kinds = [120, 120, 120, 163, 262, 275, UNKNOWN]
    for task in range(2, len(graph)):
        seed, choice = divmod(seed, 343)
        if graph.task_type[task] != PUT:
            graph.task_type[task] = kinds[choice % 7]
        seed, one = divmod(seed, len(POOL))
        seed, other = divmod(seed, len(POOL))
        inputs.append(len(lists))
        outputs.append(len(lists) + 1)
        lists += [(POOL[one],), (POOL[other],)]
        seed = seed * 2654435761 % (1 << 40) + choice
    return analysed(
        rank_with(small.rank, with_operands(graph, lists, inputs, outputs)), {PUT} if world.typed else None
    )


def placed(one: Analysed, *, together: bool) -> list[Placed]:
    found = []
    number = one.rank.number
    for key, tasks in collapsed(one, by_task(one.rank, set(), set())).items():
        lands_on = number
        if together and key[3][1] == "slice":
            lands_on = (one.rank.graph.trigger_event[tasks[0]] >> 32) % (1 << 16)
        nodes = [(number, task) for task in tasks]
        found.append(Placed(key, number, nodes, lands_on, bytes_by_hand(key[4], key[3][1])))
    return found


def entries_by_hand(memory: Memory, ranks: dict[int, Analysed], every: list[Placed]) -> list[Placed]:
    """The accesses of a memory as the definition has them, in its order."""
    keys: dict[tuple[int, TileAccess], Key] = {}
    for number, one in ranks.items():
        if memory.tensor in one.accesses.tensors:
            own = one.accesses.tensors[memory.tensor].accesses
            keys |= {
                (number, access): key for access, key in zip(own, keys_of(one, memory.tensor), strict=True)
            }
    by_key = {(one.rank, one.key): one for one in every}
    found = [by_key[entry.rank, keys[entry.rank, entry.access]] for entry in memory.entries]
    here = [one for one in every if one.lands_on == memory.rank and one.key[0] == memory.tensor]
    assert sorted(id(one) for one in found) == sorted(id(one) for one in here)
    assert [(one.tasks[0][1], one.rank) for one in found] == sorted(
        (one.tasks[0][1], one.rank) for one in found
    )
    return found


def share(one: Placed, other: Placed) -> bool:
    if one.touched is None or other.touched is None:
        return one.touched != set() != other.touched
    return not one.touched.isdisjoint(other.touched)


def is_plain(one: Placed) -> bool:
    """Whether tasks replace exactly the bytes of a tile by values of their own."""
    access, extent, certain = one.key[3]
    initialises = (one.key[1], access) == ("input", "write")  # of the types here no other writes by an input
    exact = certain and extent in {"exact", "slice"} and one.touched is not None
    return exact and access in {"write", "update"} and not initialises


def compare(memory: Memory, entries: list[Placed], past: dict[Node, set[Node]]) -> None:
    def those(accesses: int) -> list[Placed]:
        return [entries[index] for index in members(accesses)]

    def writes(one: Placed) -> bool:
        return one.key[3][0] in WRITING

    def apart(one: Placed, other: Placed) -> bool:
        return any(a != b and a not in past[b] and b not in past[a] for a in one.tasks for b in other.tasks)

    assert memory.everything == (1 << len(entries)) - 1
    assert those(memory.writing) == [one for one in entries if writes(one)]
    assert those(memory.reading) == [
        one for one in entries if one.key[3][0] in {"read", "update", "maybe-write"}
    ]
    assert those(memory.remote) == [one for one in entries if one.key[3][1] == "slice"]
    for index, one in enumerate(entries):
        before = [other for other in entries if all(past[a].issuperset(other.tasks) for a in one.tasks)]
        after = [other for other in entries if all(past[b].issuperset(one.tasks) for b in other.tasks)]
        assert those(memory.before(index)) == before
        assert those(memory.after(index)) == after
        unordered = [other for other in entries if apart(one, other)]
        assert those(memory.unordered(index)) == unordered
        assert those(memory.overlapping(index)) == [other for other in entries if share(one, other)]
        assert those(memory.conflicting(index)) == [
            other for other in unordered if share(one, other) and (writes(one) or writes(other))
        ]
        if writes(one):
            assert [entries[other] for other in same_of_own_call(memory, index)] == [
                other
                for other in entries[index:]
                if all(map(is_plain, (one, other)))
                and (one.rank, one.key[5]) == (other.rank, other.key[5])
                and apart(one, other)
                and share(one, other)
            ]
        assert those(memory.last_writes(index)) == last_writes(index, entries)
        assert those(memory.earlier(index)) == [
            other for other in entries if other.tasks[0][1] < one.tasks[-1][1]
        ]


def straighten(world: World) -> None:
    """No task waits for what it triggers, or for later events: as a rule there is an order then."""
    for small in world.ranks:
        for task in small.tasks:
            if INVALID not in (task.dependent, task.trigger) and position(task.trigger) <= position(
                task.dependent
            ):
                task.dependent = INVALID


def last_writes(index: int, entries: list[Placed]) -> list[Placed]:
    """The writes before an access, call by call from the last on, that reach what no later call reached."""
    one = entries[index]
    calls: dict[object, list[Placed]] = {}
    for other in entries:
        earlier = other.tasks[0][1] < one.tasks[-1][1] and other.key[3][0] in WRITING
        another = (other.rank, other.key[5]) != (one.rank, one.key[5])
        if earlier and another and share(one, other):
            calls.setdefault((other.rank, other.key[5]), []).append(other)
    everything = set(range(-1, 200))  # stands for all bytes that there can be
    left = everything if one.touched is None else set(one.touched)
    found: list[Placed] = []
    for writes in sorted(calls.values(), key=lambda own: entries.index(own[-1]), reverse=True):
        reached = set().union(*(write.touched or () for write in writes))
        if left & reached or (left and any(write.touched is None for write in writes)):
            found += writes
        left -= reached
    return sorted(found, key=entries.index)


@given(worlds(broken=False), _NUMBERS)
@many_worlds
def test_what_is_unordered_is_what_is_so_task_by_task(world: World, seed: int) -> None:
    straighten(world)
    ranks = {small.rank: populated(small, world, seed + small.rank * (seed % 3)) for small in world.ranks}
    truth = Truth(world)
    events = [one.events for one in ranks.values()]
    order = happens_before_of(joined(events) if world.together else events[0])
    if not isinstance(order, HappensBefore):
        event("no order")
        return
    early = {place for place, wanted in truth.num_triggers.items() if truth.triggers[place] > wanted}
    past = closure(truth, early)
    every = [each for one in ranks.values() for each in placed(one, together=world.together)]
    conflicts = 0
    for tensor in sorted({tensor for one in ranks.values() for tensor in one.accesses.tensors}):
        if world.together:
            memories = memories_across([one.accesses for one in ranks.values()], tensor, order)
            assert [memory.rank for memory in memories] == list(ranks)
        else:
            ((_, one),) = ranks.items()
            memories = (memory_of(one.accesses, tensor, order),)
        for memory in memories:
            compare(memory, entries_by_hand(memory, ranks, every), past)
            conflicts += sum(bool(memory.conflicting(index)) for index in range(len(memory.entries)))
    event(f"together: {world.together}, conflicts: {conflicts > 0}")


def test_two_slots_of_one_task_are_not_unordered_but_those_of_twins_are() -> None:
    """A task that reads what it writes does not race with itself; two such tasks race."""
    for times in (1, 2):
        tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1)]
        tasks += [SmallTask(120, INVALID, 2)] * times
        graph = SmallRank(0, tasks, [1, 1, times], (2, len(tasks)), []).graph()
        one = analysed(
            rank_with(0, with_operands(graph, [(), (0,)], [0, 0] + [1] * times, [0, 0] + [1] * times)), None
        )
        order = happens_before_of(one.events)
        assert isinstance(order, HappensBefore)
        memory = memory_of(one.accesses, "x", order)
        assert [entry.access.tasks for entry in memory.entries] == [times, times]
        assert memory.conflicting(0) == (0b10 if times == 2 else 0)
        assert memory.conflicting(1) == (0b11 if times == 2 else 0)


def test_where_regions_are_too_hard_to_compare_the_runs_around_them_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And where there are too many regions, any two may overlap."""
    rows = [SmallTask(120, INVALID, 2)] * 3
    tasks = [SmallTask(0, INVALID, INVALID), SmallTask(10, INVALID, 1), *rows]
    graph = SmallRank(0, tasks, [1, 1, 3], (2, 5), []).graph()
    rows_of_four = [OPERANDS.index(Operand("x", offset, 930, (4, 4), (8, 1))) for offset in (0, 4)]
    far = OPERANDS.index(Operand("x", 20, 930, (8,), (1,)))  # in the hull of the first two, over the second's
    lists = [(), *((operand,) for operand in (*rows_of_four, far))]
    one = analysed(rank_with(0, with_operands(graph, lists, [0] * 5, [0, 0, 1, 2, 3])), None)
    order = happens_before_of(one.events)
    assert isinstance(order, HappensBefore)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b101, 0b110, 0b111]
    assert memory.comparison.exact
    monkeypatch.setattr(byte_ranges, "MOST_RUNS", 4)
    monkeypatch.setattr(byte_ranges, "_MOST_PAIRS", 0)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b111] * 3
    assert not memory.comparison.exact
    monkeypatch.setattr(byte_ranges, "MOST_BITS", 8)
    memory = memory_of(one.accesses, "x", order)
    assert [memory.overlapping(index) for index in range(3)] == [0b111] * 3
    assert not memory.comparison.exact


# --- real graphs ----------------------------------------------------------------------------------


def memories(one: Analysed) -> list[Memory]:
    order = happens_before_of(one.events, forgiven=one.events.too_many)
    assert isinstance(order, HappensBefore)
    return [memory_of(one.accesses, tensor, order) for tensor in one.accesses.tensors]


@pytest.mark.parametrize("graph", QWEN)
def test_all_that_is_unordered_in_a_clean_graph_is_within_one_operator(graph: str) -> None:
    """The experts' tasks, which share tiles, and the tasks of a split sum."""
    found = {
        (
            str(entry.slot.slot),
            memory.entries[other].slot == entry.slot,
            memory.entries[other].access.call == entry.access.call,
        )
        for memory in memories(real(graph))
        for index, entry in enumerate(memory.entries)
        for other in members(memory.conflicting(index))
    }
    expected = {
        "qwen3-30b-a3b-moe-blackwell": {
            ("output 0 (out) of TASK_MOE_W13_LINEAR_SM100 variant 0", True, True),
            ("output 0 (out) of TASK_MOE_W2_LINEAR_SM100 variant 0", True, True),
        },
        "qwen3-8b-blackwell-2layers": {
            ("output 0 (out) of TASK_SPLITK_LINEAR_SM100 variant 0", True, True),
            ("output 0 (out) of TASK_SPLITK_LINEAR_SM100 variant 1", True, True),
        },
    }
    assert found == expected.get(graph, set())


def test_the_gather_of_deepseek_is_unordered_with_the_decode() -> None:
    (memory,) = [memory for memory in memories(real(DEEPSEEK[0])) if memory.tensor == "contiguous_kv"]
    kinds = {
        (memory.entries[one].slot.slot.operator.type_name, memory.entries[other].slot.slot.operator.type_name)
        for one in members(memory.writing)
        for other in members(memory.conflicting(one))
    }
    assert kinds == {
        ("TASK_MLA_KV_GATHER_SM100", "TASK_MLA_KV_GATHER_SM100"),
        ("TASK_MLA_KV_GATHER_SM100", "TASK_MLA_MTP_DECODE_SM100"),
    }


@pytest.mark.parametrize(
    "graph, reads",
    [
        *((graph, {}) for graph in (*QWEN, TWO_RANKS)),
        *(
            (graph, {"contiguous_kv": 2, "fp8_input_7168_shared": 4, "fp8_scale_7168_shared": 4})
            for graph in DEEPSEEK
        ),
    ],
)
def test_what_reads_may_find_unwritten(graph: str, reads: dict[str, int]) -> None:
    """The last write before them is unordered: the gather's, and what is quantized once more, to the same.

    That a reduction may come before its own rank's partial sum shows across ranks only.
    """
    found: Counter[str] = Counter()
    for memory in memories(real(graph)):
        for read in members(memory.reading):
            found[memory.tensor] += bool(memory.last_writes(read) & memory.unordered(read))
    assert +found == Counter(reads)


def test_across_ranks_puts_land_with_their_targets_and_overwrite_what_is_still_read() -> None:
    both = [real(TWO_RANKS, number) for number in (0, 1)]
    order = happens_before_of(joined([one.events for one in both]))
    assert isinstance(order, HappensBefore)
    for memory in memories_across([one.accesses for one in both], "all_reduce_buf", order):
        assert {memory.entries[put].rank for put in members(memory.remote)} == {1 - memory.rank}
        assert memory.remote == memory.writing
        assert memory.remote.bit_count() == 256
        overwritten = {
            (reader, put)
            for put in members(memory.writing)
            for reader in members(memory.conflicting(put) & memory.reading)
            if memory.entries[reader].access.first < memory.entries[put].access.first
        }
        assert len(overwritten) == 256
    (memory, _) = memories_across([one.accesses for one in both], "attn_proj_out", order)
    early = [
        (write, read)
        for write in members(memory.writing)
        for read in members(memory.conflicting(write) & memory.reading)
        if memory.entries[read].access.call == memory.entries[write].access.call + 2
    ]
    assert len(early) == 128  # as many again of mlp_out: the reductions that may read too early
    assert {memory.entries[read].slot.slot.operator.type_name for _, read in early} == {"TASK_REDUCE"}
