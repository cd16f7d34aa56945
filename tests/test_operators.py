"""Operators: the catalogue's definition to the letter, and the layer calls of real models."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action.analyses.operators import Operators, operators_of
from mkcov_action.artifacts import RankFiles
from mkcov_action.finding import Operator
from mkcov_action.kernel_source import Declaration, KernelSource, Origin
from mkcov_action.megakernel import Rank
from mkcov_action.task_graph import Events, Operand, TaskGraph
from tests.small_worlds import INVALID, many_worlds
from tests.some_ranks import QWEN, TWO_RANKS, rank_of

ORIGINS = {
    "layer_0_weight": Origin.MODEL,
    "model.layers.1.weight": Origin.SHUFFLED,
    "layer_2_mid": Origin.SCRATCH,
    "x": Origin.SCRATCH,
}
# Strides and data types do not tell operands apart; offsets, dims and names do.
OPERANDS = tuple(
    Operand(name, offset, 941, dims, strides)
    for name, (offset, dims, strides) in product(
        (*ORIGINS, "undeclared"), [(0, (8,), (1,)), (0, (8,), (2,)), (64, (8,), (1,)), (0, (4,), (1,))]
    )
)
Fields = tuple[int, ...]
"""Type, variant, operand lists of inputs and outputs, two metadata fields, dependent and trigger."""


def rank_of_tasks(lists: list[tuple[int, ...]], tasks: list[Fields], *, metadata: bool = True) -> Rank:
    """A rank whose tasks from 2 on have these fields."""
    rows = [(0, 0, 0, 0, 0, 0, INVALID, INVALID), (10, 0, 0, 0, 0, 0, INVALID, 1), *tasks]
    columns = list(zip(*rows, strict=True))
    names = [tuple(OPERANDS[operand].tensor for operand in operands) for operands in lists]
    distinct = list(dict.fromkeys(names))
    graph = TaskGraph(
        operands=OPERANDS,
        operand_lists=tuple(lists),
        tensor_lists=tuple(distinct),
        tensor_list_of=array("I", map(distinct.index, names)),
        task_type=array("i", columns[0]),
        variant_id=array("I", columns[1]),
        inputs=array("I", columns[2]),
        outputs=array("I", columns[3]),
        metadata={"request_id": array("i", columns[4]), "kv_idx": array("i", columns[5])} if metadata else {},
        dependent_event=array("Q", columns[6]),
        trigger_event=array("Q", columns[7]),
        events=Events(array("i"), array("i"), array("q"), array("q")),
        first_tasks=(),
    )
    declarations = {name: Declaration(name, origin, 1) for name, origin in ORIGINS.items()}
    return Rank(
        number=0,
        files=RankFiles(rank=0),
        kernel=KernelSource(declarations, None, None),
        task_graph=graph,
        type_names={120: "TASK_LINEAR"},
    )


def by_definition(rank: Rank) -> list[tuple[tuple[object, ...], int]]:
    """The key of each task's operator, and the how manieth of that key it is."""
    graph = rank.graph

    def operands(column: array[int], task: int) -> list[Operand]:
        return [graph.operands[index] for index in graph.operand_lists[column[task]]]

    pairs: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    found = []
    for task in range(2, len(graph)):
        both = operands(graph.inputs, task), operands(graph.outputs, task)
        names = [tuple(operand.tensor for operand in side) for side in both]
        key = (graph.task_type[task], graph.variant_id[task], *names)
        tiles = [tuple((operand.offset, operand.dims) for operand in side) for side in both]
        metadata = tuple(column[task] for column in graph.metadata.values())
        seen = pairs.setdefault((key, *tiles, metadata), [])
        pair = graph.dependent_event[task], graph.trigger_event[task]
        if pair not in seen:
            seen.append(pair)
        found.append((key, (key, *tiles, metadata), pair, task))
    own: dict[tuple[object, ...], list[Found]] = {}
    for one in found:
        own.setdefault(one[0], []).append(one)
    homes = {key: homes_of(pairs, mine) for key, mine in own.items()}
    return [(key, homes[key][twins, pair]) for key, twins, pair, _ in found]


Twins = tuple[object, ...]
Found = tuple[tuple[object, ...], Twins, tuple[int, int], int]


def homes_of(
    pairs: dict[Twins, list[tuple[int, int]]], own: list[Found]
) -> dict[tuple[Twins, tuple[int, int]], int]:
    """The number of a key's call for each of its twins and their pair: by what most tasks of the key do."""
    counts = Counter(len(pairs[twins]) for twins in {one[1] for one in own})
    usual = max(counts, key=lambda count: (counts[count], count))
    at_home = [one for one in own if len(pairs[one[1]]) == usual]
    homes = {(twins, pair): pairs[twins].index(pair) for _, twins, pair, _ in at_home}
    for _, twins, pair, task in own:
        if len(pairs[twins]) == usual or (twins, pair) in homes:
            continue
        for alike in (
            [one for one in at_home if one[2] == pair],
            [one for one in at_home if one[2][1] == pair[1]],
            [one for one in at_home if one[2][0] == pair[0]],
        ):
            numbers = {homes[one[1], one[2]] for one in alike}
            if len(numbers) == 1:
                homes[twins, pair] = numbers.pop()
                break
        else:
            before = [homes[one[1], one[2]] for one in at_home if one[3] < task]
            homes[twins, pair] = max(before, default=0)
    return homes


def layers_by_definition(operators: Operators) -> list[int | None]:
    """Own numbers, counted by hand, else that of the last operator that has one."""
    layers: list[int | None] = []
    for call in operators.calls:
        attached = [
            name
            for name in (*call.inputs, *call.outputs)
            if ORIGINS.get(name) in {Origin.MODEL, Origin.SHUFFLED}
        ]
        numbers = [int(re.findall(r"layers?[._](\d+)", name)[0]) for name in attached]
        if numbers:
            layers.append(max(numbers, key=numbers.count))
        else:
            layers.append(layers[-1] if layers else None)
    return layers


LISTS = st.lists(st.lists(st.integers(0, len(OPERANDS) - 1), max_size=2).map(tuple), min_size=3, max_size=3)
TASKS = st.lists(
    st.tuples(
        st.sampled_from([120, 120, 275]),
        st.sampled_from([0, 0, 1]),
        st.integers(0, 2),
        st.integers(0, 2),
        st.integers(0, 2),
        st.sampled_from([0, 0, 1]),
        st.sampled_from([2, 3, INVALID]),
        st.sampled_from([3, 4, INVALID]),
    ),
    max_size=12,
)


@given(LISTS, TASKS, st.integers(1, 3), st.booleans())
@many_worlds
def test_operators_are_those_of_the_definition(
    lists: list[tuple[int, ...]], tasks: list[Fields], repeats: int, metadata: bool
) -> None:
    layers = [shifted(task, by) for by in range(repeats) for task in tasks]
    compare(rank_of_tasks(lists, layers, metadata=metadata))


def shifted(task: Fields, by: int) -> Fields:
    """The same task in a later layer, which names the same tensors."""
    *fields, dependent, trigger = task
    return (*fields, dependent + by, trigger + by)


def compare(rank: Rank) -> None:
    graph, operators = rank.graph, operators_of(rank)
    expected = by_definition(rank)
    assert list(operators.operator_of[:2]) == [-1, -1]
    order = list(dict.fromkeys(expected))
    assert list(operators.operator_of[2:]) == [order.index(which) for which in expected]
    assert len(operators.calls) == len(order)
    for index, (call, (key, _)) in enumerate(zip(operators.calls, order, strict=True)):
        tasks = [task for task, owner in enumerate(operators.operator_of) if owner == index]
        name = {120: "TASK_LINEAR"}.get(call.type_number, f"TYPE_{call.type_number}")
        assert call.operator == Operator(name, key[1])  # type: ignore[arg-type]
        assert (call.type_number, call.operator.variant, call.inputs, call.outputs) == key
        assert (call.first, call.tasks) == (tasks[0], len(tasks))
        for events, column in (
            (call.dependent_events, graph.dependent_event),
            (call.trigger_events, graph.trigger_event),
        ):
            assert list(events) == [e for e in dict.fromkeys(column[task] for task in tasks) if e != INVALID]
    assert [call.layer for call in operators.calls] == layers_by_definition(operators)


def test_layers_that_differ_in_nothing_but_events_are_operators_of_their_own() -> None:
    tasks: list[Fields] = [
        (120, 0, 0, 0, request, 0, layer, layer + 1) for layer in (2, 3, 4) for request in range(5)
    ]
    calls = operators_of(rank_of_tasks([(12,)], tasks)).calls
    assert [(call.first, call.tasks) for call in calls] == [(2, 5), (7, 5), (12, 5)]


def test_one_layer_that_triggers_several_events_is_one_operator() -> None:
    tasks: list[Fields] = [(120, 0, 0, 0, request, 0, 2, 3 + request % 2) for request in range(6)]
    (call,) = operators_of(rank_of_tasks([(12,)], tasks)).calls
    assert (call.tasks, call.dependent_events, call.trigger_events) == (6, (2,), (3, 4))


def test_strides_do_not_tell_tasks_apart_but_offsets_do() -> None:
    x = 12  # the first operand of that name
    for other, alike in ((x + 1, True), (x + 2, False), (x + 3, False)):
        tasks: list[Fields] = [(120, 0, 0, 0, 0, 0, 2, 3), (120, 0, 1, 1, 0, 0, 3, 4)]
        calls = operators_of(rank_of_tasks([(x,), (other,)], tasks)).calls
        assert len(calls) == (2 if alike else 1)


@pytest.mark.parametrize("layer", range(5))
@pytest.mark.parametrize("stray", [None, 1])
def test_a_stray_tile_stays_in_its_layer(layer: int, stray: int | None) -> None:
    """A task takes its neighbour's tile, or is missing: the calls of the other layers keep theirs."""
    tiles = [[0, 1, 2] for _ in range(5)]
    tiles[layer][0:1] = [] if stray is None else [stray]
    x = 12  # the first operand of that name; the next ones are of other tiles
    tasks: list[Fields] = [
        (120, 0, tile, 0, 0, 0, place + 2, place + 3) for place, row in enumerate(tiles) for tile in row
    ]
    calls = operators_of(rank_of_tasks([(x,), (x + 2,), (x + 3,)], tasks)).calls
    assert [call.tasks for call in calls] == [len(row) for row in tiles]
    assert [call.trigger_events for call in calls] == [(place + 3,) for place in range(5)]


def test_a_rank_without_tasks_has_no_operators() -> None:
    assert operators_of(rank_of_tasks([()], [])).calls == ()


# --- real graphs ----------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [*QWEN, TWO_RANKS, "deepseek-v3-2layers", "deepseek-v3-2layers-tp2"])
def test_operators_of_real_graphs_are_those_of_the_definition(graph: str) -> None:
    rank = rank_of(graph)
    expected = by_definition(rank)
    index = {which: place for place, which in enumerate(dict.fromkeys(expected))}
    assert list(operators_of(rank).operator_of[2:]) == [index[which] for which in expected]


DECODER = 8  # two norms, qkv, attention, o_proj, gate and up, silu, down
HEAD = 4  # the last norm, the vocabulary, argmax in two steps
"""What the operators of a layer's number are: those of the layer, and behind the last one the head's."""


@pytest.mark.parametrize(
    "graph, layers",
    [
        ("qwen3-0.6b-hopper", [DECODER] * 27 + [DECODER + HEAD]),
        ("qwen3-30b-a3b-moe-blackwell", [DECODER + 3] * 47 + [DECODER + 3 + HEAD]),  # router, w2, sum
        ("qwen3-8b-blackwell-2layers", [DECODER, DECODER + HEAD]),
        (TWO_RANKS, [DECODER + 4, DECODER + 4 + HEAD]),  # two times put and reduce
        ("deepseek-v3-61layers-tp8", [21] * 3 + [32] * 57 + [32 + HEAD]),
    ],
)
def test_each_layer_of_a_real_graph_has_the_operators_of_its_model(graph: str, layers: list[int]) -> None:
    operators = operators_of(rank_of(graph))
    embedding, *others = operators.calls
    assert (embedding.operator.type_name, embedding.layer, embedding.tasks) == ("TASK_EMBEDDING", None, 1)
    counts = Counter(call.layer for call in others)
    assert counts == dict(enumerate(layers))
    assert [call.layer for call in others] == [n for n, count in enumerate(layers) for _ in range(count)]
    assert sum(call.tasks for call in operators.calls) == len(operators.operator_of) - 2


def test_a_layer_of_deepseek_quantizes_the_same_input_for_three_operators() -> None:
    calls = operators_of(rank_of("deepseek-v3-2layers")).calls
    assert Counter(call.layer for call in calls) == {None: 1, 0: 20, 3: 30 + HEAD}
    shared = [call for call in calls if call.layer == 0 and call.inputs == ("rmsnorm_out",)]
    assert [(call.first, call.tasks) for call in shared] == [(11, 8), (19, 8), (27, 8), (2509, 8)]
    (silu,) = [call for call in calls if call.layer == 0 and call.operator.type_name == "TASK_SILU_MUL"]
    assert (silu.tasks, len(silu.dependent_events), len(silu.trigger_events)) == (48, 16, 1)
