"""What the runner says by variables and files, as actions/runner writes and reads them."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action import github
from mkcov_action.github import LIMIT, Inputs

TRICKY = {
    "blanks": "a  b\tc",
    "quotes": 'it\'s "quoted" `so`',
    "lines": "a\nb\r\n\nc",
    "command": "::error::x",
    "bracket": "##[error]x",
    "percent": "%0A::error::x%25 %s",
    "dashes": "--fail-on=never",
    "shell": "$(touch x); ${IFS} && | > /dev/null",
    "backslashes": r"a\nb\\",
    "heredoc": "a<<b\nb\nc=d",
    "letters": "größe 張量",
    "not UTF-8": "\udcff",
    "endless": "x" * 10_000,
}


def outputs_in(text: str) -> dict[str, str]:
    """What a runner reads in GITHUB_OUTPUT (actions/runner FileCommandManager.cs, on Linux)."""
    assert text == "" or text.endswith("\n")
    outputs: dict[str, str] = {}
    lines = iter(text.split("\n")[:-1])
    for line in filter(None, lines):
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, value = line.split("=", 1)
        else:
            name, delimiter = line.split("<<", 1)
            assert delimiter
            block = []
            while (line := next(lines)) != delimiter:
                block.append(line)
            value = "\n".join(block)
        assert name
        outputs[name] = value
    return outputs


def given_inputs(monkeypatch: pytest.MonkeyPatch, **values: str) -> tuple[Inputs, tuple[str, ...]]:
    for name, value in values.items():
        monkeypatch.setenv(f"INPUT_{name.replace('_', '-').upper()}", value)
    return github.read_inputs()


# --- inputs ---------------------------------------------------------------------------------------


def test_without_variables_and_with_empty_ones_nothing_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert github.read_inputs() == (Inputs(), ())
    empty = dict.fromkeys(Inputs.__dataclass_fields__, "")
    assert given_inputs(monkeypatch, **empty) == (Inputs(), ())
    blank = dict.fromkeys(Inputs.__dataclass_fields__, " \n\t")
    assert given_inputs(monkeypatch, **blank) == (Inputs(), ())


def test_every_input_is_read_under_its_name_with_dashes(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {
        "path": "a\n  b/c  \n\n-d\n",
        "ranks": "0,2\n4-7",
        "critical": "+my_*\nother,",
        "fail_on": " warning ",
        "select": "MK1",
        "ignore": "MK109, dead-scratch\n",
        "one_graph": "true",
        "task_types": "include/runtime_header.h",
        "sarif_file": "out/a b.sarif",
        "json_file": "out/report.json\n",
        "summary": "no",
        "annotations": "False",
        "allow_empty": "1",
    }
    assert given_inputs(monkeypatch, **given) == (
        Inputs(
            path=("a", "b/c", "-d"),
            ranks="0,2,4-7",
            critical="+my_*,other",
            fail_on="warning",
            select="MK1",
            ignore="MK109,dead-scratch",
            one_graph=True,
            task_types="include/runtime_header.h",
            sarif_file="out/a b.sarif",
            json_file="out/report.json",
            summary=False,
            annotations=False,
            allow_empty=True,
        ),
        (),
    )


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "yes", "1", "false", "False", "NO", "no", "0"])
def test_a_boolean_is_written_as_people_write_it(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inputs, problems = given_inputs(monkeypatch, summary=text)
    assert (inputs.summary, problems) == (text.lower() in {"true", "yes", "1"}, ())


@pytest.mark.parametrize("text", ["maybe", "2", "tru", "'true'", "true\nfalse", "--true"])
def test_anything_else_is_no_boolean_and_says_so(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inputs, problems = given_inputs(monkeypatch, summary=text, one_graph="yes", allow_empty=text)
    assert (inputs.summary, inputs.one_graph, inputs.allow_empty) == (None, True, None)
    assert problems == (
        f"input summary must be true or false, not: {text}",
        f"input allow-empty must be true or false, not: {text}",
    )


@pytest.mark.parametrize("text", TRICKY.values(), ids=TRICKY)
def test_an_input_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    inputs, problems = given_inputs(monkeypatch, sarif_file=text, fail_on=text, path=f"{text}\n")
    assert (inputs.sarif_file, inputs.fail_on, problems) == (text, text, ())
    assert inputs.path == tuple(line.strip() for line in text.split("\n") if line.strip())


def test_paths_that_begin_with_the_host_s_name_of_the_checkout_are_found_in_the_container(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", "/github/workspace")
    monkeypatch.setenv("GITHUB_REPOSITORY", "octocat/models")
    monkeypatch.setenv("RUNNER_WORKSPACE", "/home/runner/work/models")
    there = "/home/runner/work/models/models"
    lines = ["/github/workspace/a", f"{there}/b c", there, f"{there}-2/d", "gen", "/elsewhere"]
    inputs, _ = given_inputs(monkeypatch, path="\n".join(lines), json_file=f"{there}/r.json")
    assert inputs.path == (
        "/github/workspace/a",
        "/github/workspace/b c",
        "/github/workspace",
        f"{there}-2/d",
        "gen",
        "/elsewhere",
    )
    assert inputs.json_file == "/github/workspace/r.json"


# --- outputs --------------------------------------------------------------------------------------


@given(
    st.dictionaries(
        st.sampled_from(["verdict", "exit-code", "sarif-file"]), st.text(st.characters(codec="utf-8"))
    )
)
def test_the_runner_reads_back_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, outputs: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("output") / "set_output"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("GITHUB_OUTPUT", str(path))
        assert github.write_outputs(outputs) is None
        assert github.write_outputs({"last": "a\n\nb"}) is None
    assert outputs_in(path.read_bytes().decode()) == outputs | {"last": "a\n\nb"}


def test_a_delimiter_that_stands_in_the_value_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = [UUID(int=number) for number in (1, 1, 2)]
    monkeypatch.setattr(github, "uuid4", lambda: numbers.pop(0))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    value = f"x\nmkcov_{UUID(int=1).hex}\nverdict=pass"
    assert github.write_outputs({"file": value}) is None
    assert outputs_in((tmp_path / "output").read_text()) == {"file": value}
    assert not numbers


def test_a_file_name_that_is_not_utf_8_keeps_its_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    assert github.write_outputs({"file": os.fsdecode(b"\xff.sarif")}) is None
    assert b"\n\xff.sarif\n" in (tmp_path / "output").read_bytes()


def test_more_than_the_runner_takes_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    reason = github.write_outputs({"file": "x" * LIMIT})
    assert reason is not None
    assert reason.startswith("a step's outputs can have 1,048,576 bytes, not 1,048,")
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(
    "write", [lambda: github.write_outputs({"a": "b"}), lambda: github.append_summary("x")]
)
def test_where_nobody_listens_there_is_nothing_to_do(
    tmp_path: Path, write: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(write)
    assert write() is None
    for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(variable, str(tmp_path / "not" / "mounted"))
    assert write() is None
    for variable in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.setenv(variable, str(tmp_path))
    assert write() == "Is a directory"
    assert not list(tmp_path.iterdir())


# --- summary --------------------------------------------------------------------------------------


@pytest.mark.parametrize("before, between", [("", ""), ("# Before\n", ""), ("no line end", "\n")])
def test_a_summary_is_appended_on_a_line_of_its_own_and_fills_its_room_exactly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str, between: str
) -> None:
    path = tmp_path / "summary"
    path.write_text(before)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    room = github.summary_room()
    assert room == LIMIT - len(before) - 1
    text = "## Verdict\n" + "x" * (room - 11)
    assert github.append_summary(text) is None
    assert path.read_text() == before + between + text
    assert path.stat().st_size <= LIMIT
    assert github.summary_room() == 0


def test_without_a_summary_there_is_no_room_to_speak_of() -> None:
    assert github.summary_room() is None


def test_a_full_summary_has_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "summary"
    path.write_bytes(b"x" * (LIMIT + 5))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    assert github.summary_room() == 0


# --- the rest -------------------------------------------------------------------------------------


def test_a_group_is_two_commands_around_lines_and_nothing_around_none() -> None:
    assert github.group("title", "a\nb\n") == "::group::title\na\nb\n::endgroup::\n"
    assert not github.group("title", "")


def test_a_runner_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not github.in_workflow()
    assert github.workspace() is None
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", "/github/workspace")
    assert github.in_workflow()
    assert github.workspace() == Path("/github/workspace")


def test_no_other_module_reads_the_runner_s_variables(repository: Path) -> None:
    readers = [
        path.name
        for path in (repository / "mkcov_action").rglob("*.py")
        if any(f'"{prefix}' in path.read_text() for prefix in ("GITHUB_", "INPUT_", "RUNNER_"))
    ]
    assert readers == ["github.py"]
