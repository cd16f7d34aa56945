from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from mkcov_action import __version__
from mkcov_action.finding import Confidence, Failure, Location, NotChecked, Operator
from mkcov_action.report import Coverage, RankRefs, Report, Status, TypeRefs, Verdict
from mkcov_action.reporters import json_report
from mkcov_action.schema import load
from tests.reports import finding, graph, rank, report, reports, tensor

SCHEMA = load("report")
VALIDATOR = Draft202012Validator(SCHEMA)

REFS = TypeRefs(task_type=278, name="TASK_MLA_KV_GATHER_SM100", refs=78)

FULLEST = report(
    Verdict.FAIL,
    graphs=(graph(rank(0), rank(1), world_size=2),),
    tensors=(
        replace(
            tensor("rope_cos", Status.MISSING_WIRING, ranks=(0, 1), critical=True),
            consumers=(REFS,),
            producers=(REFS,),
            by_rank=(RankRefs(rank=0, input_refs=156, output_refs=0, status=Status.OK),),
        ),
    ),
    findings=(
        finding(
            members=("layer_0_gate",),
            location=Location(uri="gen/kernel_0.cu", line=110, column=3, text="not for the report"),
            related=(Location(uri="gen/kernel_1.cu", line=110, column=3, text="the same on rank 1"),),
        ),
    ),
    not_checked=(NotChecked(rule="MK103", reason="unknown type", graph="gen"),),
    failures=(Failure(message="MK109 failed", internal=True, graph="gen", detail="Traceback: /home/me"),),
    warnings=("gen lies outside the root",),
)
"""A report in which every key occurs."""

# As FULLEST, without what may be left out.
BARE = replace(
    FULLEST,
    tensors=tuple(replace(each, by_rank=()) for each in FULLEST.tensors),
    findings=(
        finding(
            location=Location(uri="gen/kernel_0.cu", line=110),
            related=(Location(uri="gen/kernel_1.cu", line=110),),
        ),
    ),
)


def rendered(shown: Report) -> Any:
    return json.loads(json_report.render(shown))


def emitted_keys(value: Any, path: str = "") -> Iterator[str]:
    """The path of every key that occurs, with [] for an array's items."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{path}.{key}"
            yield from emitted_keys(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from emitted_keys(item, f"{path}[]")


def described_keys(schema: dict[str, Any], path: str = "", *, required: bool = False) -> Iterator[str]:
    """The path of every key that the schema describes, or of those that it requires."""
    if "$ref" in schema:
        yield from described_keys(SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]], path, required=required)
    for choice in schema.get("oneOf", ()):
        yield from described_keys(choice, path, required=required)
    for key in schema["required"] if required and "required" in schema else schema.get("properties", {}):
        yield f"{path}.{key}"
        yield from described_keys(schema["properties"][key], f"{path}.{key}", required=required)
    if "items" in schema:
        yield from described_keys(schema["items"], f"{path}[]", required=required)


def subschemas(schema: Any, path: str = "#") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every place of the schema that describes a value, with its path."""
    yield path, schema
    for group in ("properties", "$defs"):
        for key, inner in schema.get(group, {}).items():
            yield from subschemas(inner, f"{path}/{group}/{key}")
    if "items" in schema:
        yield from subschemas(schema["items"], f"{path}/items")


def test_the_schema_is_a_valid_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_field_is_described_and_every_object_closed() -> None:
    for path, schema in subschemas(SCHEMA):
        described = schema.get("description") or "$ref" in schema
        assert described, path
        if schema.get("type") == "object":
            assert schema["additionalProperties"] is False, path
            assert set(schema["required"]) <= set(schema["properties"]), path


@given(reports)
def test_every_report_obeys_the_schema(any_report: Report) -> None:
    VALIDATOR.validate(rendered(any_report))


def test_the_schema_describes_what_is_written_and_nothing_else() -> None:
    assert set(emitted_keys(rendered(FULLEST))) == set(described_keys(SCHEMA))


def test_the_schema_requires_what_is_always_written_and_nothing_else() -> None:
    assert set(emitted_keys(rendered(BARE))) == set(described_keys(SCHEMA, required=True))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2),
        ("verdict", "passed"),
        ("exit_code", 4),
        ("unknown", 1),
        ("graphs", [{"graph": "gen"}]),
        ("warnings", [1]),
    ],
)
def test_the_schema_rejects_what_is_no_report(key: str, value: object) -> None:
    assert not VALIDATOR.is_valid({**rendered(FULLEST), key: value})


def test_the_report_has_the_promised_form() -> None:
    passed = report(
        tensors=(replace(tensor("rope_cos", refs=(78, 0), critical=True), consumers=(REFS,)),),
        findings=(finding(operator=Operator("TASK_LINEAR", 2), confidence=Confidence.POSSIBLE),),
        not_checked=(NotChecked(rule="MK108", reason="too few layers", graph="gen"),),
        deselected=("MK105",),
    )
    expected = {
        "version": 1,
        "tool": {"name": "mkcov", "version": __version__},
        "verdict": "pass",
        "exit_code": 0,
        "graphs": [
            {
                "graph": "gen",
                "world_size": 1,
                "ranks": [
                    {
                        "rank": 0,
                        "kernel": "gen/kernel_0.cu",
                        "task_graph": "gen/task_graph_0.json",
                        "tasks": 7242,
                        "events": 95,
                        "coverage": {
                            "declared": 91,
                            "read": 84,
                            "written": 36,
                            "dead": 6,
                            "model_tensors": 47,
                            "model_tensors_consumed": 45,
                            "dead_bytes": 1258291,
                        },
                        "audited": True,
                    }
                ],
            }
        ],
        "tensors": [
            {
                "graph": "gen",
                "name": "rope_cos",
                "origin": "model",
                "bytes": None,
                "ranks": [0],
                "input_refs": 78,
                "output_refs": 0,
                "consumers": [{"task_type": 278, "name": "TASK_MLA_KV_GATHER_SM100", "refs": 78}],
                "producers": [],
                "critical": True,
                "status": "ok",
            }
        ],
        "findings": [
            {
                "graph": "gen",
                "rule": "MK101",
                "name": "missing-wiring",
                "severity": "error",
                "confidence": "possible",
                "message": "rope_cos is attached to the model, and no task reads it",
                "consequence": "attention runs position-blind: fluent text that repeats and makes no sense",
                "fix": "pass rope_cos to the layer that applies rotary embedding, then generate again",
                "tensor": "rope_cos",
                "operator": "TASK_LINEAR variant 2",
                "members": [],
                "ranks": [0],
                "location": {"uri": "gen/kernel_0.cu", "line": 110},
                "related": [],
                "fingerprint": passed.findings[0].fingerprint,
            }
        ],
        "not_checked": [{"graph": "gen", "rule": "MK108", "reason": "too few layers"}],
        "deselected": ["MK105"],
        "errors": [],
        "warnings": [],
    }
    # The text, not the value: the order of keys is part of the form.
    assert json_report.render(passed) == json.dumps(expected, indent=2) + "\n"


def test_a_lone_surrogate_survives_as_an_escape() -> None:
    shown = json_report.render(report(tensors=(tensor("a\ud800b"),)))
    assert r'"a\ud800b"' in shown
    assert json.loads(shown)["tensors"][0]["name"] == "a\ud800b"


def test_a_runner_command_survives_as_an_escape() -> None:
    shown = json_report.render(report(tensors=(tensor("##[error]x"),)))
    assert "##[" not in shown
    assert json.loads(shown)["tensors"][0]["name"] == "##[error]x"


def test_a_traceback_stays_out_of_the_report() -> None:
    assert "/home/me" not in json_report.render(FULLEST)


def test_a_figure_that_is_no_number_is_refused() -> None:
    absurd = rank(coverage=Coverage(declared=float("nan")))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_report.render(report(graphs=(graph(absurd),)))


def test_a_schema_that_does_not_ship_is_not_found() -> None:
    with pytest.raises(FileNotFoundError):
        load("no-such")
