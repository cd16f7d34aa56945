"""The task graph reader: the same facts as a naive reading, and a place for everything it refuses."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action import task_graph
from mkcov_action.finding import Problem, ProblemKind
from mkcov_action.task_graph import METADATA_FIELDS, TaskGraph, decode, read_task_graph

Document = dict[str, Any]


def tensor(name: str = "x", **fields: Any) -> Document:
    return {"base_ptr": name, "data_type": 941, "dims": [8, 64], "offset": 0, "strides": [64, 1]} | fields


def task(
    inputs: list[Document] | None = None, outputs: list[Document] | None = None, **fields: Any
) -> Document:
    return {
        "dependent_event": 2,
        "expert_offset": -65536,
        "inputs": inputs,
        "kv_idx": 65535,
        "merge_task_offset": -1,
        "outputs": outputs,
        "request_id": 0,
        "task_offset": -65536,
        "task_type": 120,
        "trigger_event": 2,
        "variant_id": 0,
    } | fields


def document(tasks: list[Document] | None, **fields: Any) -> Document:
    event = {"event_type": 900, "first_task_id": 2, "last_task_id": 3, "num_triggers": 1}
    return {"all_events": [event] * 3, "all_tasks": tasks, "first_tasks": [2]} | fields


SMALL = document(
    [
        task(task_type=0, trigger_event=2**63 - 2, dependent_event=2**63 - 2),
        task(task_type=10, trigger_event=(5 << 32) | 1),
        task([tensor("a"), tensor("b", offset=4096)], [tensor("c")]),
        task([tensor("a"), tensor("b", offset=4096)], None, trigger_event=0x1E00000000000000 + (3 << 32) + 7),
    ]
)


def generated(data: Document) -> bytes:
    return json.dumps(data, indent=2).encode()


def compact(data: Document) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


def read(text: bytes) -> tuple[TaskGraph | None, tuple[Problem, ...]]:
    return read_task_graph(lambda: io.BytesIO(text))


def graph_of(text: bytes) -> TaskGraph:
    graph, problems = read(text)
    assert problems == ()
    assert graph is not None
    return graph


def problem_of(text: bytes) -> Problem:
    graph, problems = read(text)
    assert graph is None
    (problem,) = problems
    return problem


def as_document(graph: TaskGraph) -> Document:
    """The document that a graph came from, with null for every empty list."""

    def tensors(index: int) -> list[Document] | None:
        operands = [graph.operands[operand] for operand in graph.operand_lists[index]]
        return [
            tensor(o.tensor, data_type=o.data_type, dims=[*o.dims], offset=o.offset, strides=[*o.strides])
            for o in operands
        ] or None

    def row(index: int) -> Document:
        columns = {
            "task_type": graph.task_type,
            "variant_id": graph.variant_id,
            "trigger_event": graph.trigger_event,
            "dependent_event": graph.dependent_event,
            **graph.metadata,
        }
        operands = {"inputs": tensors(graph.inputs[index]), "outputs": tensors(graph.outputs[index])}
        return {name: column[index] for name, column in columns.items()} | operands

    events = [
        {
            "event_type": graph.events.event_type[index],
            "num_triggers": graph.events.num_triggers[index],
            "first_task_id": graph.events.first_task_id[index],
            "last_task_id": graph.events.last_task_id[index],
        }
        for index in range(len(graph.events))
    ]
    return {
        "all_events": events,
        "all_tasks": [row(index) for index in range(len(graph))],
        "first_tasks": [*graph.first_tasks],
    }


@pytest.mark.parametrize("layout", [generated, compact], ids=["generated", "compact"])
def test_every_value_of_the_file_is_kept(layout: Callable[[Document], bytes]) -> None:
    assert as_document(graph_of(layout(SMALL))) == SMALL


def test_equal_operand_lists_are_decoded_once() -> None:
    graph = graph_of(generated(SMALL))
    assert graph.inputs[2] == graph.inputs[3]
    assert len(graph.operands) == 3


def test_the_rank_is_read_from_task_1() -> None:
    assert graph_of(generated(SMALL)).rank == 5


@pytest.mark.parametrize("size", [1, 700, 5000])
def test_pieces_may_be_cut_anywhere(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_PIECE", size)
    tasks = [task([tensor(f"t{index % 7}", offset=index)], [tensor("out")]) for index in range(60)]
    monkeypatch.setattr(task_graph, "read_whole", None)  # the quick way must manage alone
    assert as_document(graph_of(generated(document(tasks)))) == document(tasks)


@pytest.mark.parametrize("missing", [(), METADATA_FIELDS[3:4], METADATA_FIELDS[1:], METADATA_FIELDS])
def test_older_generations_lack_metadata_fields(missing: tuple[str, ...]) -> None:
    old = {key: value for key, value in task([tensor()]).items() if key not in missing}
    graph = graph_of(generated(document([old, old])))
    assert set(graph.metadata) == set(METADATA_FIELDS) - set(missing)


@pytest.mark.parametrize("layout", [generated, compact], ids=["generated", "compact"])
def test_newer_generators_keys_are_read_over_and_named(layout: Callable[[Document], bytes]) -> None:
    new = document(
        [task([tensor(base_guid=5, view_offset=0)], smem_regions=[{"a": {"b": 1}}], planned_smem_bytes=4)],
        v2_worker_task_queues=[[2, 3], [4]],
        v2_smem_planner={"version": 1},
    )
    assert tuple(graph_of(layout(new)).unknown_keys) == (
        "task.planned_smem_bytes",
        "task.smem_regions",
        "tensor.base_guid",
        "tensor.view_offset",
        "v2_smem_planner",
        "v2_worker_task_queues",
    )


def test_null_stands_for_every_empty_list() -> None:
    graph = graph_of(generated({"all_events": None, "all_tasks": None, "first_tasks": None}))
    assert (len(graph), len(graph.events), graph.first_tasks, graph.rank) == (0, 0, (), None)


def test_more_tensors_than_the_april_limits_are_fine() -> None:
    graph = graph_of(generated(document([task([tensor(f"i{n}") for n in range(34)], [tensor()] * 13)])))
    assert [len(operands) for operands in graph.operand_lists] == [34, 13]


def test_names_may_hold_what_looks_like_structure() -> None:
    names = ["a:b", '"task_type": 5', "}\n  ]", "\n    },\n    {", "é", "::error::", ""]
    data = document([task([tensor(name) for name in names])])
    for text in (generated(data), compact(data), json.dumps(data, indent=2, ensure_ascii=False).encode()):
        assert [operand.tensor for operand in graph_of(text).operands] == names


def replaced(old: str, new: str) -> bytes:
    text = generated(SMALL).decode()
    assert old in text
    return text.replace(old, new, 1).encode()


MALFORMED = {
    "empty": (b"", "the file is empty", 1, 1),
    "blank": (b" \n", "the file is empty", 1, 1),
    "truncated": (generated(SMALL)[:900], "truncated", 44, 5),
    "trailing": (generated(SMALL) + b"x", "trailing characters", None, None),
    "nan": (replaced('"variant_id": 0', '"variant_id": NaN'), "invalid character", 34, 21),
    "repeated task key": (replaced('"variant_id": 0', '"variant_id": 0, "kv_idx": 1'), "'kv_idx' stands twice", None, None),
    "repeated tensor key": (replaced('"offset": 4096', '"offset": 4096, "offset": 0'), "'offset' stands twice", None, None),
    "repeated event key": (replaced('"event_type": 900', '"event_type": 900, "event_type": 1'), "'event_type'", None, None),
    "repeated list": (replaced('"first_tasks"', '"all_tasks": [], "first_tasks"'), "'all_tasks' stands twice", None, None),
    "nested": (replaced('"variant_id": 0', '"variant_id": 0, "x": ' + "[" * 100_000 + "]" * 100_000), "nests too deep", None, None),
    "latin-1 name": (replaced('"base_ptr": "a"', '"base_ptr": "a\\u00e9"').replace(b"\\u00e9", b"\xe9"), "UTF-8", None, None),
    "latin-1 elsewhere": (replaced('"variant_id": 0', '"variant_id": 0, "note": "?"').replace(b'"?"', b'"\xe9"'), "UTF-8", 34, 33),
    "lone surrogate": (replaced('"base_ptr": "a"', '"base_ptr": "\\ud800"'), "hex escape", None, None),
    "utf-16": (generated(SMALL).decode().encode("utf-16"), "UTF-8", 1, 1),
}  # fmt: skip


@pytest.mark.parametrize("text, message, line, column", MALFORMED.values(), ids=MALFORMED)
def test_what_is_no_json_is_told_with_its_line(
    text: bytes, message: str, line: int | None, column: int | None
) -> None:
    problem = problem_of(text)
    assert problem.kind is ProblemKind.MALFORMED
    assert message in problem.message
    assert line is None or problem.line == line
    assert column is None or problem.column == column


def changed(**fields: Any) -> bytes:
    return generated(document([task([tensor()]), task([tensor()]), task([tensor()]) | fields]))


def without(*keys: str) -> bytes:
    last = {key: value for key, value in task([tensor()]).items() if key not in keys}
    return generated(document([task([tensor()]), last]))


def tensor_without(key: str) -> Document:
    return {name: value for name, value in tensor().items() if name != key}


def event_without(key: str) -> Document:
    return {name: value for name, value in SMALL["all_events"][0].items() if name != key}


VIOLATIONS = {
    "a list": (b"[]", ""),
    "no tasks": (b'{"all_events": null, "first_tasks": null}', ""),
    "type is text": (changed(task_type="linear"), "/all_tasks/2/task_type"),
    "type is a float": (changed(task_type=1.5), "/all_tasks/2/task_type"),
    "type is a bool": (changed(task_type=True), "/all_tasks/2/task_type"),
    "type too large": (changed(task_type=2**31), "/all_tasks/2/task_type"),
    "400 digits": (changed(variant_id=10**400), "/all_tasks/2/variant_id"),
    "negative event": (changed(trigger_event=-1), "/all_tasks/2/trigger_event"),
    "event beyond 64 bits": (changed(dependent_event=2**64), "/all_tasks/2/dependent_event"),
    "no variant": (without("variant_id"), "/all_tasks/1"),
    "no inputs": (without("inputs"), "/all_tasks/1"),
    "mixed generations": (without("kv_idx"), "/all_tasks/1"),
    "inputs is an object": (changed(inputs={}), "/all_tasks/2/inputs"),
    "null name": (changed(inputs=[tensor(), tensor(base_ptr=None)]), "/all_tasks/2/inputs/1/base_ptr"),
    "negative offset": (changed(outputs=[tensor(offset=-2)]), "/all_tasks/2/outputs/0/offset"),
    "dims is null": (changed(outputs=[tensor(dims=None)]), "/all_tasks/2/outputs/0/dims"),
    "events of the first generation": (changed(trigger_event={"event_pos": 1}), "/all_tasks/2/trigger_event"),
    "event without type": (
        generated(document([], all_events=[event_without("event_type")])),
        "/all_events/0",
    ),
    "a number": (b"7", ""),
    "no events": (b'{"all_tasks": null, "first_tasks": null}', ""),
    "no first tasks": (b'{"all_tasks": null, "all_events": null}', ""),
    "tasks are an object": (generated(document({})), "/all_tasks"),  # type: ignore[arg-type]
    "events are text": (generated(document([], all_events="none")), "/all_events"),
    "first tasks is a number": (generated(document([], first_tasks=2)), "/first_tasks"),
    "a task is null": (generated(document([task([tensor()]), None])), "/all_tasks/1"),  # type: ignore[list-item]
    "a task is a list": (generated(document([task([tensor()]), []])), "/all_tasks/1"),  # type: ignore[list-item]
    "an event is a number": (generated(document([], all_events=[5])), "/all_events/0"),
    "negative variant": (changed(variant_id=-1), "/all_tasks/2/variant_id"),
    "variant is null": (changed(variant_id=None), "/all_tasks/2/variant_id"),
    "metadata is text": (changed(kv_idx="0"), "/all_tasks/2/kv_idx"),
    "metadata too large": (changed(task_offset=2**40), "/all_tasks/2/task_offset"),
    "a tensor is text": (changed(inputs=["x"]), "/all_tasks/2/inputs/0"),
    "a tensor without offset": (changed(inputs=[tensor_without("offset")]), "/all_tasks/2/inputs/0"),
    "a tensor without strides": (
        changed(outputs=[tensor(), tensor_without("strides")]),
        "/all_tasks/2/outputs/1",
    ),
    "data type is text": (changed(inputs=[tensor(data_type="bf16")]), "/all_tasks/2/inputs/0/data_type"),
    "a dimension is negative": (changed(inputs=[tensor(dims=[8, -1])]), "/all_tasks/2/inputs/0/dims/1"),
    "a stride is a float": (changed(inputs=[tensor(strides=[0.5, 1])]), "/all_tasks/2/inputs/0/strides/0"),
    "negative triggers are fine, text is not": (
        generated(document([], all_events=[SMALL["all_events"][0] | {"num_triggers": "1"}])),
        "/all_events/0/num_triggers",
    ),
    "a task range below 0": (
        generated(document([], all_events=[SMALL["all_events"][0] | {"first_task_id": -1}])),
        "/all_events/0/first_task_id",
    ),
    "first tasks": (generated(document([], first_tasks=["2"])), "/first_tasks/0"),
}


@pytest.mark.parametrize("text, pointer", VIOLATIONS.values(), ids=VIOLATIONS)
def test_what_is_no_task_graph_is_told_with_its_pointer_and_line(text: bytes, pointer: str) -> None:
    problem = problem_of(text)
    assert (problem.kind, problem.pointer) == (ProblemKind.SCHEMA, pointer)
    value: Any = json.loads(text)
    for step in pointer.split("/")[1:]:
        value = value[int(step) if step.isdigit() else step]
    assert problem.line is not None
    assert problem.column is not None
    rest = text.decode().split("\n")[problem.line - 1][problem.column - 1 :]
    assert rest.startswith(json.dumps(value)[:1]), "line and column lead to the value"


def test_a_problem_in_the_compact_layout_has_the_same_pointer() -> None:
    data = document([task([tensor()]), task([tensor(), tensor(offset="0")])])
    assert (
        problem_of(compact(data)).pointer
        == problem_of(generated(data)).pointer
        == "/all_tasks/1/inputs/1/offset"
    )


def test_one_line_of_100_megabytes_is_read() -> None:
    tasks = [task([tensor("a" * 1000)], [tensor("b" * 1000)])] * 45_000
    text = compact(document(tasks))
    assert len(text) > 100_000_000
    assert len(graph_of(text)) == 45_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)


@given(JSON | st.fixed_dictionaries({"all_tasks": JSON, "all_events": JSON, "first_tasks": JSON}))
def test_any_json_gives_a_graph_or_a_problem(value: Any) -> None:
    graph, problems = read(json.dumps(value).encode())
    assert (graph is None) == bool(problems)


@given(st.binary())
def test_any_bytes_give_a_graph_or_a_problem(data: bytes) -> None:
    graph, problems = read(data)
    assert (graph is None) == bool(problems)


@given(st.integers(0, 2**32), st.sampled_from([generated, compact]))
def test_a_damaged_file_is_read_as_the_standard_parser_reads_it_or_refused(
    seed: int, layout: Callable[[Document], bytes]
) -> None:
    """One to three bytes flipped, dropped or doubled: what we accept, json.loads reads alike."""
    dice = random.Random(seed)  # noqa: S311
    text = bytearray(layout(SMALL))
    for _ in range(dice.randint(1, 3)):
        at = dice.randrange(len(text))
        text[at : at + 1] = dice.choice([b"", bytes(text[at : at + 1]) * 2, bytes([dice.randrange(32, 127)])])
    graph, problems = read(bytes(text))
    assert (graph is None) == bool(problems)
    if graph is not None:
        known = json.loads(bytes(text), object_pairs_hook=no_repetition)
        assert project(as_document(graph)) == project(known)


def no_repetition(pairs: list[tuple[str, Any]]) -> Document:
    assert len(dict(pairs)) == len(pairs), "we accepted a repeated key"
    return dict(pairs)


def project(data: Document) -> Document:
    """Without unknown keys, and with null for empty lists."""

    def pick(item: Document, like: Document) -> Document:
        return {
            key: item[key] or None if key in ("inputs", "outputs") else item[key]
            for key in like
            if key in item
        }

    def operands(item: Document) -> Document:
        return item | {
            side: [pick(operand, tensor()) for operand in item[side] or ()] or None
            for side in ("inputs", "outputs")
        }

    event = SMALL["all_events"][0]
    return {
        "all_events": [pick(item, event) for item in data["all_events"] or ()],
        "all_tasks": [operands(pick(item, task())) for item in data["all_tasks"] or ()],
        "first_tasks": data["first_tasks"] or [],
    }


LONG = b"9" * 10_000  # longer than Python's json reads


def test_a_number_of_any_length_is_a_violation_with_its_pointer() -> None:
    graph, problems = read(changed(variant_id=-77).replace(b"-77", LONG))
    assert graph is None
    assert [problem.pointer for problem in problems] == ["/all_tasks/2/variant_id"]
    assert len(problems[0].message) < 500


def test_a_number_of_any_length_under_a_key_that_we_do_not_know_is_read_past() -> None:
    graph, problems = read(changed(novel=-77).replace(b"-77", LONG))
    assert problems == ()
    assert graph is not None
    assert list(graph.unknown_keys) == ["task.novel"]
