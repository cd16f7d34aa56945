"""The real container as GitHub's runner starts it: what a job sees, whatever the inputs hold."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.container.runner import Engine, Step, owner

pytestmark = pytest.mark.xdist_group("container")  # one engine serves one worker

RUNNER = (1001, 127, 0o644)
OUTPUTS = {"verdict", "exit-code", "errors", "warnings", "sarif-file", "json-file", "coverage", "truncated"}
KNOWN = {"group", "endgroup", "error", "warning", "notice"}
INPUTS = (
    "path",
    "ranks",
    "critical",
    "fail-on",
    "select",
    "ignore",
    "one-graph",
    "task-types",
    "sarif-file",
    "json-file",
    "summary",
    "annotations",
    "allow-empty",
)
HOSTILE = {
    "spaces": "a b  c",
    "quotes": "a\"b'c`d$(touch injected)\\",
    "newlines": "a\n::error::injected\r::warning::injected\nb",
    "commands": "::error file=x::injected",
    "old-commands": "##[error]injected",
    "percent": "%0A::error::injected%25",
    "dashes": "--help",
    "long": "x" * 10_000,
}


@pytest.fixture
def workspace(tmp_path: Path, repository: Path) -> Path:
    """A checkout without .git in which codegen has written both demos."""
    checkout = tmp_path / "repo"
    for demo in ("wired", "unwired"):
        shutil.copytree(repository / "fixtures" / "demo" / demo, checkout / demo)
    return checkout


def results_of(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_bytes())["runs"][0]["results"]  # type: ignore[no-any-return]


def assert_sound(step: Step) -> None:
    """A step tells the same everywhere, and its log obeys nobody but us."""
    assert set(step.outputs) == OUTPUTS
    assert step.outputs["exit-code"] == str(step.exit_code)
    assert {command["command"] for command in step.commands} <= KNOWN
    assert not any(command["message"].startswith("injected") for command in step.commands)
    assert "##[error]injected" not in step.log.partition("##[command]docker run")[2].partition("\n")[2]


def test_the_unwired_demo_fails_and_tells_it_everywhere(engine: Engine, workspace: Path) -> None:
    step = engine.action(workspace, {"path": "unwired"})  # builds the Dockerfile, as the runner does
    assert_sound(step)
    assert step.exit_code == 1
    assert step.outputs["verdict"] == "fail"
    assert step.outputs["errors"] == "2"
    assert step.outputs["coverage"] == "92.0"
    assert step.outputs["sarif-file"] == "mkcov.sarif"
    assert [item["file"] for item in step.annotations()] == ["unwired/kernel_0.cu"] * 2
    assert "FAIL (exit 1): 2 errors" in step.summary
    assert owner(workspace / "mkcov.sarif") == RUNNER
    errors = [item for item in results_of(workspace / "mkcov.sarif") if item["level"] == "error"]
    assert [item["ruleId"] for item in errors] == ["MK101", "MK101"]
    place = errors[0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "unwired/kernel_0.cu"


def test_the_wired_demo_passes(engine: Engine, image: str, workspace: Path) -> None:
    step = engine.action(workspace, {"path": "wired"}, image)
    assert_sound(step)
    assert (step.exit_code, step.outputs["verdict"], step.outputs["errors"]) == (0, "pass", "0")
    assert step.outputs["coverage"] == "100.0"
    assert not step.annotations()
    assert "PASS" in step.summary
    assert owner(workspace / "mkcov.sarif") == RUNNER


@pytest.mark.parametrize("graph, code", [("deepseek-v3-2layers", 1), ("qwen3-8b-hopper-2layers", 0)])
def test_real_graphs(  # noqa: PLR0917 - pytest's fixtures
    engine: Engine, image: str, tmp_path: Path, corpus: Path, graph: str, code: int
) -> None:
    workspace = tmp_path / "repo"
    workspace.mkdir()
    shutil.copytree(corpus / graph, workspace / "gen", copy_function=shutil.copyfile)
    (workspace / "gen").chmod(0o755)
    step = engine.action(workspace, {"path": "gen"}, image)
    assert_sound(step)
    assert step.exit_code == code
    assert bool(step.annotations()) == bool(code)
    rules = {item["ruleId"] for item in results_of(workspace / "mkcov.sarif") if item["level"] == "error"}
    assert ("MK101" in rules) == bool(code)
    assert owner(workspace / "mkcov.sarif") == RUNNER


def test_every_input_set(engine: Engine, image: str, workspace: Path) -> None:
    header = workspace / "runtime_header.h"
    header.write_text("enum TaskType {\n  TASK_TERMINATE = 0,\n};\n")
    inputs = {
        "path": "unwired\nwired",
        "ranks": "0,1",
        "critical": "+rope_cos",
        "fail-on": "never",
        "select": "MK1",
        "ignore": "MK109",
        "one-graph": "false",
        "task-types": "runtime_header.h",
        "sarif-file": "out/a.sarif",
        "json-file": "out/b.json",
        "summary": "false",
        "annotations": "false",
        "allow-empty": "true",
    }
    assert set(inputs) == set(INPUTS)
    step = engine.action(workspace, inputs, image)
    assert_sound(step)
    assert (step.exit_code, step.outputs["verdict"], step.summary) == (0, "pass", "")
    assert not step.annotations()
    assert (step.outputs["sarif-file"], step.outputs["json-file"]) == ("out/a.sarif", "out/b.json")
    assert owner(workspace / "out") == (1001, 127, 0o755)
    assert owner(workspace / "out" / "a.sarif") == owner(workspace / "out" / "b.json") == RUNNER


def test_no_input_and_nothing_to_audit_is_not_green(engine: Engine, image: str, workspace: Path) -> None:
    step = engine.action(workspace, {}, image)
    assert_sound(step)
    assert (step.exit_code, step.outputs["verdict"], step.outputs["sarif-file"]) == (2, "error", "")
    assert not (workspace / "mkcov.sarif").exists()
    assert step.summary


def test_no_input_audits_the_checkout(engine: Engine, image: str, workspace: Path) -> None:
    step = engine.action(workspace / "unwired", {}, image)
    assert_sound(step)
    assert step.exit_code == 1


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_hostile_inputs_are_text(engine: Engine, image: str, workspace: Path, value: str) -> None:
    """All inputs at once; of those that must be of a form, none makes sense, and the step says so."""
    step = engine.action(workspace, dict.fromkeys(INPUTS, value), image)
    assert_sound(step)
    assert step.exit_code == 2
    assert not list(workspace.rglob("injected*"))


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_hostile_critical_names_are_only_names(
    engine: Engine, image: str, workspace: Path, value: str
) -> None:
    step = engine.action(workspace, {"path": "wired", "critical": f"+{value}"}, image)
    assert_sound(step)
    assert step.exit_code == 0
