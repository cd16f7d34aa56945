"""The published schema: right by the metaschema, true of real files, and of one mind with the reader."""

from __future__ import annotations

import copy
import io
import json
import lzma
import random
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from mkcov_action.finding import ProblemKind
from mkcov_action.schema import load
from mkcov_action.task_graph import read_task_graph
from tests.test_task_graph import VIOLATIONS
from tools.builder import decoder

SCHEMA = load("task_graph")
VALIDATOR = Draft202012Validator(SCHEMA)
CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
REAL = sorted(CORPUS.glob("*/task_graph_*.json.xz"))
MUTATIONS = 2000

Document = dict[str, Any]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_field_is_described() -> None:
    def fields(schema: Any) -> Any:
        if isinstance(schema, dict):
            for name, field in schema.get("properties", {}).items():
                if isinstance(field, dict):
                    yield name, field
            for part in schema.values():
                yield from fields(part)

    described = dict(fields(SCHEMA))
    assert {name for name, field in described.items() if not field.get("description")} == set()
    assert len(described) == 3 + 11 + 5 + 4


@pytest.mark.skipif(not REAL, reason="the corpus of real graphs (../shared/corpus) is not here")
@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_plain_jsonschema_accepts_real_graphs(path: Path) -> None:
    document = json.loads(lzma.decompress(path.read_bytes()))
    if len(document["all_tasks"]) >= 10_000:
        pytest.skip("jsonschema takes minutes for so many tasks")
    assert VALIDATOR.is_valid(document)


def small_documents() -> list[Document]:
    """A built graph, and slices of real ones where they are."""
    built: Document = decoder(layers=1)[0].task_graph()
    documents = [built]
    for path in REAL:
        if path.stat().st_size < 100_000:
            whole = json.loads(lzma.decompress(path.read_bytes()))
            documents.append({key: value[:12] for key, value in whole.items()})
    return documents


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 7, 1.0, 1.5, 2.0**70, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**63 - 1, 2**63,
    2**64 - 1, 2**64, 10**400, "", "0", "nullptr", [], [None], [0], {}, {"base_ptr": "x"}, [[]], [{}],
]  # fmt: skip


def mutate(document: Document, dice: random.Random) -> None:
    """Changes, drops or adds one member somewhere in a document."""
    node: Any = document
    for _ in range(dice.randint(0, 6)):
        children = [
            child
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, dict | list) and child
        ]
        if not children:
            break
        node = dice.choice(children)
    keys = list(node) if isinstance(node, dict) else list(range(len(node)))
    key = dice.choice(keys)
    action = dice.randrange(4)
    if action == 0:
        del node[key]
    elif action == 1 and isinstance(node, dict):
        node[dice.choice(["extra", "kv_idx", "view_offset"])] = copy.deepcopy(dice.choice(VALUES))
    else:
        node[key] = copy.deepcopy(dice.choice(VALUES))


def verdict_of_the_reader(text: str) -> bool:
    graph, problems = read_task_graph(lambda: io.BytesIO(text.encode()))
    assert {problem.kind for problem in problems} <= {ProblemKind.SCHEMA}
    assert (graph is None) == bool(problems)
    return graph is not None


def test_the_reader_and_the_schema_agree_on_mutated_graphs() -> None:
    dice = random.Random(20261130)  # noqa: S311
    documents = small_documents()
    verdicts = []
    for _ in range(MUTATIONS):
        document = copy.deepcopy(dice.choice(documents))
        for _ in range(dice.choice([1, 1, 2, 3])):
            mutate(document, dice)
        layout: dict[str, Any] = dice.choice([{"indent": 2, "sort_keys": True}, {"separators": (",", ":")}])
        verdict = VALIDATOR.is_valid(document)
        assert verdict_of_the_reader(json.dumps(document, **layout)) == verdict, json.dumps(document)[:3000]
        verdicts.append(verdict)
    assert 0.1 < sum(verdicts) / MUTATIONS < 0.9, "both verdicts are tried"


@pytest.mark.parametrize("text", [text for text, _ in VIOLATIONS.values()], ids=list(VIOLATIONS))
def test_the_schema_refuses_every_single_edit_that_the_reader_refuses(text: bytes) -> None:
    assert not VALIDATOR.is_valid(json.loads(text))


def problems_of(document: Document) -> list[tuple[str | None, str]]:
    text = json.dumps(document, indent=2).encode()
    _, problems = read_task_graph(lambda: io.BytesIO(text))
    return [(problem.pointer, problem.message) for problem in problems]


def test_a_violation_that_repeats_is_said_once_with_its_count() -> None:
    document = decoder(layers=1)[0].task_graph()
    for task in document["all_tasks"]:
        task["variant_id"] = "zero"
    count = len(document["all_tasks"])
    assert problems_of(document) == [
        ("/all_tasks/0/variant_id", f'expected an integer, found "zero" (and {count - 1} more like it)')
    ]


def test_violations_of_many_sorts_are_listed_outermost_first_and_the_rest_counted() -> None:
    document = decoder(layers=1)[0].task_graph()
    del document["first_tasks"]
    document["all_tasks"][5]["inputs"] = [{f"key {n}": n for n in range(5)}]
    document["all_tasks"][3]["task_type"] = None
    found = problems_of(document)
    assert found[0] == ("", "`first_tasks` is missing")
    assert found[1] == ("/all_tasks/3/task_type", "expected an integer, found null")
    assert found[2:] == [
        ("/all_tasks/5/inputs/0", f"`{key}` is missing")
        for key in ("base_ptr", "offset", "data_type", "dims", "strides")
    ]


def test_at_most_fifty_violations_are_listed() -> None:
    tensor = {"base_ptr": 1, "offset": "", "data_type": "", "dims": "", "strides": ""}
    task: Document = {"task_type": "", "variant_id": "", "trigger_event": "", "dependent_event": ""}
    document: Document = {
        "all_events": [{}],
        "first_tasks": [""],
        "all_tasks": [task | {"inputs": [tensor], "outputs": [tensor]}],
    }
    depths = document["all_tasks"][0]
    for name in ("request_id", "kv_idx", "expert_offset", "task_offset", "merge_task_offset"):
        depths[name] = []
    found = problems_of(document)
    assert 20 < len(found) <= 50
    assert len({pointer for pointer, _ in found}) > 15


def test_a_value_is_cut_to_a_short_line() -> None:
    document: Document = {"all_events": None, "first_tasks": None, "all_tasks": "x" * 10_000}
    ((_, message),) = problems_of(document)
    assert message.startswith('expected a list or null, found "xxxx')
    assert len(message) < 120


@pytest.mark.parametrize("digits", [400, 4000])
def test_an_endless_integer_is_no_traceback(digits: int) -> None:
    text = b'{"all_events": null, "first_tasks": [' + b"9" * digits + b'], "all_tasks": null}'
    _, problems = read_task_graph(lambda: io.BytesIO(text))
    assert [problem.pointer for problem in problems] == ["/first_tasks/0"]
