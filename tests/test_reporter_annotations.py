from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.finding import Confidence, Failure, Location, Severity
from mkcov_action.report import Report, Verdict
from mkcov_action.reporters import json_report, sarif, summary, text
from mkcov_action.reporters.annotations import LIMIT, MESSAGE_BYTES, render
from tests.reports import finding, graph, rank, report, reports
from tools.rule_cases.case import Small

HOSTILE = (
    'quote"d',
    "new\nline",
    "carriage\r::error::x",
    "\x1b[31mred\x07",
    "::error::title",
    "  ::stop-commands::token",
    "\u00ad::error::x",
    "##[error]x",
    "%0A::error::x%0D%25",
    "<img src=x onerror=alert(1)>",
    "`code` | table",
    "\u202egnp.exe\u2066",
    "a, line=1, title=x",
    "x" * 10_000,
)


# --- the runner -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    name: str
    data: str
    properties: dict[str, str] = field(default_factory=dict)


# The comparison of .NET with which a runner looks for `::` skips characters of no width.
_SKIPPED = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff\x00-\x1f\x7f-\x9f]*")
_ESCAPES = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))


def commands(log: str) -> list[Command]:
    """What a runner obeys in a log (actions/runner ActionCommand.cs), of any name to be on the safe side."""
    lines = re.split(r"\r\n|\r|\n", log)
    return [command for line in lines if (command := _double_colon(line) or _bracket(line))]


def _double_colon(line: str) -> Command | None:
    line = _SKIPPED.sub("", line, count=1)
    end = line.find("::", 2)
    if not line.startswith("::") or end < 0:
        return None
    name, _, rest = line[2:end].partition(" ")
    pairs = [pair.split("=", 1) for pair in rest.strip().split(",") if "=" in pair]
    properties = {key: _unescaped(value, _ESCAPES) for key, value in pairs if value}
    return Command(name, _unescaped(line[end + 2 :], (*_ESCAPES[:2], _ESCAPES[-1])), properties)


def _bracket(line: str) -> Command | None:
    match = re.search(r"##\[([^\]]*)\](.*)", line)
    return Command(match[1].partition(" ")[0], match[2]) if match else None


def _unescaped(value: str, escapes: tuple[tuple[str, str], ...]) -> str:
    for escape, character in escapes:
        value = value.replace(escape, character)
    return value


def test_the_parser_obeys_what_a_runner_obeys() -> None:
    log = "a\r  ::error file=a%2Cb,line=3::x%0Ay%253A\nb ##[warning]z\n::nothing\n \u00ad::debug::\n"
    assert commands(log) == [
        Command("error", "x\ny%3A", {"file": "a,b", "line": "3"}),
        Command("warning", "z"),
        Command("debug", ""),
    ]


def annotated(shown: Report) -> list[Command]:
    return commands(render(shown))


# --- what an annotation says ----------------------------------------------------------------------


def test_an_annotation_stands_at_the_line_and_says_what_it_means_and_how_to_mend_it() -> None:
    assert render(report(Verdict.FAIL, findings=(finding(),))) == (
        "::error file=gen/kernel_0.cu,line=110,title=MK101 missing-wiring%3A rope_cos::"
        "rope_cos is attached to the model, and no task reads it; "
        "effect: attention runs position-blind: fluent text that repeats and makes no sense"
        "%0AFix: pass rope_cos to the layer that applies rotary embedding, then generate again\n"
    )


def test_nothing_to_say_is_no_line() -> None:
    assert not render(report())


def test_column_confidence_and_ranks_are_told_and_a_message_names_its_tensor() -> None:
    possible = finding(
        message="no task reads it",
        confidence=Confidence.POSSIBLE,
        ranks=(1, 2),
        consequence="",
        fix="",
        location=Location(uri="gen/task_graph_1.json", line=7, column=3),
    )
    four = graph(*map(rank, range(4)), world_size=4)
    assert annotated(report(Verdict.FAIL, graphs=(four,), findings=(possible,))) == [
        Command(
            "error",
            "rope_cos: no task reads it\nRanks: 1-2 of 0-3",
            {
                "file": "gen/task_graph_1.json",
                "line": "7",
                "col": "3",
                "title": "MK101 missing-wiring (possible): rope_cos",
            },
        )
    ]


@pytest.mark.parametrize(
    "uri, path",
    [
        ("gr%C3%B6%C3%9Fe%20x/kernel_0.cu", "größe x/kernel_0.cu"),
        ("a%2Cb%3Ac%2525/kernel_0.cu", "a,b:c%25/kernel_0.cu"),
        ("gen%0A::error::x/kernel_0.cu", r"gen\n::error::x/kernel_0.cu"),
        ("%E2%80%AEgen/%23%23[error].cu", r"\u202egen/##\x5berror].cu"),
        ("gen%FF%ED%A0%80.cu", r"gen\\xff\\xed\\xa0\\x80.cu"),
        ("%zz%.cu", "%zz%.cu"),
    ],
)
def test_the_file_is_the_plain_path_unless_that_could_do_harm(uri: str, path: str) -> None:
    place = Location(uri=uri, line=1)
    (command,) = annotated(report(Verdict.FAIL, findings=(finding(location=place),)))
    assert command.properties["file"] == path


def test_a_finding_without_a_place_is_annotated_without_a_file() -> None:
    (command,) = annotated(report(Verdict.FAIL, findings=(finding(location=None),)))
    assert set(command.properties) == {"title"}


def test_a_name_without_end_hides_neither_the_defect_nor_its_effect() -> None:
    endless = "n" * 10_000
    shown = report(
        Verdict.FAIL,
        findings=(finding(message=f"{endless} is declared and no task reads it", tensor_name=endless),),
    )
    (command,) = annotated(shown)
    assert "... (10,000 characters) is declared and no task reads it; effect: attention" in command.data
    assert len(command.properties["title"]) < 256


# --- limits ---------------------------------------------------------------------------------------


def many(severity: Severity, number: int) -> list[object]:
    return [finding(severity=severity, tensor_name=f"t{index}") for index in range(number)]


@pytest.mark.parametrize("number", [0, 1, LIMIT, LIMIT + 1, 2_000])
def test_the_worst_are_annotated_and_the_rest_counted_in_the_last_place(number: int) -> None:
    found = [each for severity in reversed(Severity) for each in many(severity, number)]
    shown = annotated(report(Verdict.FAIL, findings=tuple(found)))
    names = [command.name for command in shown]
    fitting = min(number, LIMIT)
    assert names == ["error"] * fitting + ["warning"] * fitting + ["notice"] * fitting
    counted = [command.data for command in shown if command.data.startswith("and ")]
    if number <= LIMIT:
        assert not counted
    else:
        rest = f"{number - LIMIT + 1:,}"
        assert [data.partition("s,")[0] for data in counted] == [
            f"and {rest} more {label}" for label in ("error", "warning", "note")
        ]
        assert "title=MK101 missing-wiring%3A t8:" in render(report(Verdict.FAIL, findings=tuple(found)))


def test_what_kept_the_run_from_a_verdict_comes_before_any_finding() -> None:
    shown = report(
        Verdict.ERROR,
        findings=(finding(), finding(severity=Severity.WARNING)),
        failures=(
            Failure(message="gen/b: holds no rank", graph="gen/b"),
            Failure(message="MK109 broke", internal=True, graph="gen"),
        ),
        warnings=("gen lies outside the root",),
    )
    assert [command.data for command in annotated(shown)[:2]] == ["gen: MK109 broke", "gen/b: holds no rank"]
    assert [(command.name, command.properties["title"]) for command in annotated(shown)] == [
        ("error", "mkcov: internal error"),
        ("error", "mkcov: no verdict"),
        ("error", "MK101 missing-wiring: rope_cos"),
        ("warning", "MK101 missing-wiring: rope_cos"),
        ("warning", "mkcov"),
    ]


@pytest.mark.parametrize("character", ["x", "é", "張", "\U0001f600", "%", "\x1b"])
def test_a_message_stays_below_the_runner_s_limit_and_is_cut_between_characters(character: str) -> None:
    endless = character * 10_000
    shown = report(
        Verdict.FAIL, findings=(finding(message=endless, consequence=endless, fix=endless, tensor_name=None),)
    )
    (command,) = annotated(shown)
    assert len(command.data.encode()) <= MESSAGE_BYTES
    assert (len(command.data.encode()) > MESSAGE_BYTES - 4) == command.data.endswith("…")


@settings(max_examples=60)
@given(reports)
def test_every_line_is_one_command_within_the_limits(any_report: Report) -> None:
    output = render(any_report)
    shown = commands(output)
    assert len(shown) == output.count("\n") <= 3 * LIMIT
    for name in ("error", "warning", "notice"):
        assert sum(command.name == name for command in shown) <= LIMIT
    for command in shown:
        assert set(command.properties) <= {"file", "line", "col", "title"}
        assert command.properties["title"]
        assert len(command.data.encode()) <= MESSAGE_BYTES
        assert len(command.properties["title"].encode()) <= 255
        assert int(command.properties.get("line", 1)) >= 1
        for value in (command.data.replace("\n", ""), *command.properties.values()):
            assert not {character for character in value if unicodedata.category(character)[0] == "C"}


# --- the whole log --------------------------------------------------------------------------------


def everything(shown: Report) -> str:
    """All that a run can print, on one stream or on two."""
    outputs = (
        text.render(shown, all_tensors=True),
        text.render(shown, color=True),
        summary.render(shown),
        json_report.render(shown),
        sarif.render(shown),
    )
    return "".join(outputs)


@settings(max_examples=60)
@given(reports)
def test_a_runner_finds_our_commands_in_the_log_and_no_other(any_report: Report) -> None:
    assert not commands(everything(any_report))
    own = render(any_report)
    assert commands(everything(any_report) + own + everything(any_report)) == commands(own)


def hostile_run(directory: Path) -> Report:
    """A real run over artifacts whose every name is hostile, the directory's included."""
    graph = Small()
    for name in HOSTILE:
        literal = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
        graph.raw_declaration(
            f'char *v = static_cast<char*>(model_tensors.at("v"));\n  all_tensors["{literal}"] = v;'
        )
    graph.linear("layer_0_proj", graph.x, graph.y)
    for name in HOSTILE:
        graph.linear(graph.undeclared(f"{name} undeclared", (16, 16)), graph.x, graph.y)
    directory.mkdir(parents=True)
    graph.head().write(directory)
    return audit(Config(paths=(str(directory),), root=directory.parent, critical=("*",)))


def test_a_run_over_hostile_names_prints_our_own_commands_only(tmp_path: Path) -> None:
    shown = hostile_run(tmp_path / "##[error]x\n::error::`,<b>%0A")
    assert {tensor.name for tensor in shown.tensors} >= set(HOSTILE)
    assert len(shown.findings) > len(HOSTILE)
    assert not commands(everything(shown))
    own = commands(render(shown))
    assert {command.name for command in own} <= {"error", "warning", "notice"}
    assert len([command for command in own if command.name == "error"]) == LIMIT
    refused = audit(Config(paths=tuple(f"{tmp_path}/{name[:99]}" for name in HOSTILE), root=tmp_path))
    assert refused.exit_code == 2
    assert not commands(everything(refused))
    assert [command.name for command in commands(render(refused))] == ["error"] * LIMIT


def test_the_order_of_the_report_is_kept(repository: Path) -> None:
    first, second = finding(tensor_name="b"), finding(tensor_name="a")
    shown = replace(report(Verdict.FAIL), findings=(first, second))
    titles = [command.properties["title"] for command in annotated(shown)]
    assert titles == ["MK101 missing-wiring: b", "MK101 missing-wiring: a"]
    unwired = repository / "fixtures" / "glm" / "before"
    real = annotated(audit(Config(paths=(str(unwired),), root=repository)))
    assert [command.name for command in real] == ["error", "error", "notice"]
    assert real[0].properties["file"] == "fixtures/glm/before/kernel_0.cu"
    assert real[0].data.startswith(
        "rope_cos is declared and no task reads it; effect: attention runs position-blind"
    )
