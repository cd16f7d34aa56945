"""The action as the runner starts it: no arguments, everything in the environment."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mkcov_action.commands import cli
from mkcov_action.commands.action import _coverage
from mkcov_action.github import LIMIT, Inputs
from mkcov_action.report import Coverage
from mkcov_action.reporters import annotations as annotations_report
from mkcov_action.reporters import json_report, sarif, summary, text
from tests.reports import graph, rank, report
from tests.test_github import TRICKY, outputs_in
from tests.test_reporter_annotations import HOSTILE, commands, hostile_run
from tools.builder import decoder, write_ranks

OUTPUTS = {"verdict", "exit-code", "errors", "warnings", "sarif-file", "json-file", "coverage", "truncated"}
OURS = {"group", "endgroup", "error", "warning", "notice"}
OWNER = (1001, 127)
ROOT = os.geteuid() == 0


@dataclass(frozen=True)
class Step:
    """What a step left behind."""

    exit_code: int
    log: str
    outputs: dict[str, str]
    summary: str

    @property
    def last_line(self) -> str:
        return self.log.rstrip("\n").rpartition("\n")[2]


class Runner:
    """A runner of one job: a checkout, and the files that a step's commands go to."""

    def __init__(self, directory: Path) -> None:
        self.workspace = directory / "workspace"
        self.files = directory / "file_commands"
        self.workspace.mkdir()
        self.files.mkdir()
        self.before = ""

    def environment(self, **given: str) -> dict[str, str]:
        inputs = dict.fromkeys(action_yml("inputs"), "")
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        return {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_REPOSITORY": "octocat/models",
            "GITHUB_OUTPUT": str(self.files / "set_output"),
            "GITHUB_STEP_SUMMARY": str(self.files / "step_summary"),
            "RUNNER_WORKSPACE": "/home/runner/work/models",
            **{f"INPUT_{name.upper()}": value for name, value in inputs.items()},
        }

    def step(self, **given: str) -> Step:
        """Runs the action with these inputs, which are spelled with underscores."""
        (self.files / "set_output").write_bytes(b"")
        (self.files / "step_summary").write_text(self.before)
        return self.result(run(self.environment(**given)))

    def result(self, result: Result) -> Step:
        assert not result.stderr
        outputs = outputs_in((self.files / "set_output").read_bytes().decode("utf-8", "surrogateescape"))
        shown = (self.files / "step_summary").read_text()
        return Step(result.exit_code, result.stdout, outputs, shown)


def run(environment: dict[str, str], *arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments, env=environment)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def raising(error: Exception) -> Callable[..., Any]:
    """A function that takes anything and fails."""

    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def action_yml(key: str) -> list[str]:
    """The names below a key of action.yml."""
    content = (Path(__file__).parent.parent / "action.yml").read_text()
    (block,) = re.findall(rf"^{key}:\n((?:  .*\n|\n)*)", content, re.MULTILINE)
    return re.findall(r"^  ([a-z-]+):", block, re.MULTILINE)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.fixture
def wired(runner: Runner) -> Runner:
    write_ranks(decoder(ranks=2), runner.workspace / "gen")
    return runner


@pytest.fixture
def unwired(runner: Runner) -> Runner:
    write_ranks(decoder(ranks=2, wired=False), runner.workspace / "gen")
    return runner


def one_of_two(directory: Path) -> None:
    decoder(ranks=2)[0].write(directory)


# --- the gate -------------------------------------------------------------------------------------


def test_an_unwired_graph_fails_and_all_that_was_asked_for_is_written_before(unwired: Runner) -> None:
    step = unwired.step(path="gen", json_file="out/report.json")
    assert step.exit_code == 1
    assert step.outputs == {
        "verdict": "fail",
        "exit-code": "1",
        "errors": "2",
        "warnings": "0",
        "sarif-file": "mkcov.sarif",
        "json-file": "out/report.json",
        "coverage": "92.0",
        "truncated": "false",
    }
    assert step.last_line.startswith("VERDICT: FAIL (exit 1)")
    assert [command.name for command in commands(step.log)] == [
        "group", "error", "error", "notice", "endgroup",
    ]  # fmt: skip
    assert step.summary.startswith("## ❌ mkcov: FAIL (exit 1)")
    results = json.loads((unwired.workspace / "mkcov.sarif").read_text())["runs"][0]["results"]
    assert [result["level"] for result in results] == ["error", "error", "note"]
    place = results[0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "gen/kernel_0.cu"
    assert json.loads((unwired.workspace / "out/report.json").read_text())["exit_code"] == 1


def test_a_wired_graph_passes_and_its_sarif_is_there_to_close_alerts(wired: Runner) -> None:
    step = wired.step(path="gen")
    assert step.exit_code == 0
    assert step.outputs["verdict"] == "pass"
    assert step.outputs["exit-code"] == "0"
    assert step.outputs["coverage"] == "100.0"
    assert step.outputs["sarif-file"] == "mkcov.sarif"
    assert step.outputs["json-file"] == ""
    assert step.summary.startswith("## ✅ mkcov: PASS")


def test_without_any_input_the_checkout_is_audited(runner: Runner) -> None:
    write_ranks(decoder(ranks=1), runner.workspace)
    assert runner.step().exit_code == 0


def test_nothing_to_audit_is_not_green_unless_allowed_and_closes_no_alert(runner: Runner) -> None:
    step = runner.step()
    assert (step.exit_code, step.outputs["verdict"], step.outputs["coverage"]) == (2, "error", "")
    assert "no generated artifacts here" in step.last_line
    allowed = runner.step(allow_empty="true")
    assert (allowed.exit_code, allowed.outputs["verdict"]) == (0, "pass")
    for each in (step, allowed):
        assert each.outputs["sarif-file"] == ""
        assert "mkcov: no SARIF: it would close the alerts of what was not audited\n" in each.log
    assert not list(runner.workspace.iterdir())


def test_fail_on_never_lets_pass_and_note_does_not(unwired: Runner) -> None:
    assert unwired.step(path="gen", fail_on="never").exit_code == 0
    assert unwired.step(path="gen", fail_on="Note", ignore="missing-wiring, MK102\nMK109").exit_code == 0
    assert unwired.step(path="gen", fail_on="note", select="MK109").exit_code == 1


def test_ranks_that_were_not_delivered_are_a_warning_unless_ranks_are_chosen(runner: Runner) -> None:
    one_of_two(runner.workspace)
    missing = runner.step(fail_on="warning")
    assert (missing.exit_code, missing.outputs["warnings"]) == (1, "1")
    assert "warning MK002 unaudited-ranks" in missing.log
    (result,) = json.loads((runner.workspace / "mkcov.sarif").read_text())["runs"][0]["results"][:1]
    assert (result["ruleId"], result["level"]) == ("MK002", "warning")
    chosen = runner.step(fail_on="warning", ranks="0")
    assert (chosen.exit_code, chosen.outputs["warnings"]) == (0, "0")
    assert "note MK002 unaudited-ranks" in chosen.log


def test_lines_of_path_are_graphs_or_ranks_of_one(runner: Runner) -> None:
    for number, builder in enumerate(decoder(ranks=2)):
        builder.write(runner.workspace / f"rank {number}")
    apart = runner.step(path="rank 0\n\n  rank 1\n", fail_on="warning", json_file="report.json")
    assert (apart.exit_code, apart.outputs["warnings"]) == (1, "2")
    report = json.loads((runner.workspace / "report.json").read_text())
    assert [graph["graph"] for graph in report["graphs"]] == ["rank 0", "rank 1"]
    joined = runner.step(path="rank 0\nrank 1\n", fail_on="warning", one_graph="true")
    assert joined.exit_code == 0


def test_coverage_counts_all_ranks_and_is_never_rounded_up() -> None:
    ranks = [rank(number, coverage=Coverage(model_tensors=5_000, model_tensors_consumed=4_999 + number))
             for number in range(2)]  # fmt: skip
    assert _coverage(report(graphs=(graph(*ranks), graph(rank(audited=False), name="b")))) == "99.9"
    assert _coverage(report(graphs=(graph(ranks[1]),))) == "100.0"
    assert _coverage(report(graphs=(graph(rank(audited=False)),))) == ""


# --- every input ----------------------------------------------------------------------------------


def test_action_yml_declares_what_is_read_and_written_and_sets_nothing(repository: Path) -> None:
    content = (repository / "action.yml").read_text()
    assert action_yml("inputs") == [field.replace("_", "-") for field in Inputs.__dataclass_fields__]
    assert set(action_yml("outputs")) == OUTPUTS
    assert not re.search(r"^ *(default|args|entrypoint|env):", content, re.MULTILINE)
    assert content.count("description:") == 1 + len(action_yml("inputs")) + len(OUTPUTS)


def test_every_input_set(unwired: Runner) -> None:
    write_ranks(decoder(ranks=2), unwired.workspace / "second")
    (unwired.workspace / "runtime_header.h").write_text("enum TaskType { TASK_TERMINATE = 0 };\n")
    given = {
        "path": "gen\nsecond",
        "ranks": "0-1",
        "critical": "+embed_*",
        "fail_on": "error",
        "select": "MK1",
        "ignore": "MK110",
        "one_graph": "false",
        "task_types": "runtime_header.h",
        "sarif_file": "out/code scanning.sarif",
        "json_file": "out/report.json",
        "summary": "yes",
        "annotations": "yes",
        "allow_empty": "no",
    }
    assert {name.replace("_", "-") for name in given} == set(action_yml("inputs"))
    step = unwired.step(**given)
    assert step.exit_code == 1, step.log
    assert step.outputs["sarif-file"] == "out/code scanning.sarif"
    assert (unwired.workspace / "out/code scanning.sarif").is_file()
    assert not (unwired.workspace / "mkcov.sarif").exists()


def test_summary_and_annotations_can_be_switched_off(unwired: Runner) -> None:
    step = unwired.step(path="gen", summary="false", annotations="0")
    assert step.exit_code == 1
    assert not step.summary
    assert not commands(step.log)


def test_inputs_that_make_no_sense_are_all_named_at_once_where_people_look(wired: Runner) -> None:
    step = wired.step(
        path="gen",
        ranks="one",
        fail_on="errors",
        select="missing-wirin",
        ignore="missing-artifact",
        sarif_file="../x.sarif",
        json_file="report.json",
        annotations="si",
    )
    assert (step.exit_code, step.outputs["verdict"], step.outputs["exit-code"]) == (2, "error", "2")
    said = [
        "input annotations must be true or false, not: si",
        "input ranks: one is neither a rank",
        "input fail-on: it must be one of error, warning, note, never: errors",
        "input select: missing-wirin is no rule's id, prefix or name; did you mean missing-wiring?",
        "input ignore: MK001 missing-artifact cannot be switched off",
        "input sarif-file: it leads out of the workspace: ../x.sarif",
    ]
    for message in said:
        assert f"ERROR: {message}" in step.log
    assert [command.name for command in commands(step.log)].count("error") == len(said)
    assert step.summary.startswith("## ⛔ mkcov: ERROR (exit 2)")
    errors = json.loads((wired.workspace / "report.json").read_text())["errors"]
    assert len(errors) == len(said)
    assert not list(wired.workspace.rglob("*.sarif"))


@pytest.mark.parametrize("value", TRICKY.values(), ids=TRICKY)
@pytest.mark.parametrize("name", Inputs.__dataclass_fields__)
def test_no_text_of_an_input_is_more_than_text(wired: Runner, name: str, value: str) -> None:
    before = set(wired.workspace.parent.rglob("*"))
    step = wired.step(**{"path": "gen", "json_file": "report.json", name: value})
    assert step.exit_code in {0, 2}
    assert set(step.outputs) == OUTPUTS
    assert step.outputs["exit-code"] == str(step.exit_code)
    assert step.last_line.startswith("VERDICT: "), step.log
    assert {command.name for command in commands(step.log)} <= OURS
    assert "Traceback" not in step.log
    assert "INTERNAL" not in step.log
    if step.exit_code:
        reasons = [line for line in step.log.splitlines() if line.startswith("ERROR: ")]
        assert reasons
        assert all(len(line) < 1_200 for line in reasons)
    written = {step.outputs["sarif-file"], step.outputs["json-file"]} - {""}
    new = {path for path in wired.workspace.parent.rglob("*") if path.is_file()} - before
    assert {
        str(path.relative_to(wired.workspace)) for path in new if wired.workspace in path.parents
    } == written


@pytest.mark.parametrize(
    "name, value", [("path", "x" * 10_000), ("ranks", "x" * 10_000), ("select", "x" * 10_000)]
)
def test_of_an_endless_input_the_reason_is_left_to_read(wired: Runner, name: str, value: str) -> None:
    step = wired.step(**{"path": "gen", name: value})
    assert step.exit_code == 2
    assert re.search(rf"ERROR: input {name}: .*(too long|neither a rank|no rule's id).*", step.log)
    assert "(10,000 characters)" in step.log


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, reason",
    [
        ("../x", "leads out of the workspace"),
        ("/etc/mkcov", "leads out of the workspace"),
        ("gen/../../x", "leads out of the workspace"),
        ("file_link", "leads out of the workspace"),
        ("dangling_link", "leads out of the workspace"),
        ("directory_link/x", "leads out of the workspace"),
        ("directory_link/../x", "leads out of the workspace"),
        ("loop", "no regular file"),
        (".", "no regular file"),
        ("gen", "no regular file"),
        ("new/", "no regular file"),
        ("pipe", "no regular file"),
        ("a\nb", "characters that cannot be shown"),
        ("a\x1b[31mb", "characters that cannot be shown"),
        ("x/" * 5_000 + "x", "too long"),
    ],
)
@pytest.mark.parametrize("name", ["sarif_file", "json_file"])
def test_what_is_no_file_of_the_checkout_is_refused_before_anything_is_done(
    wired: Runner, name: str, given: str, reason: str
) -> None:
    outside = wired.workspace.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "file").write_text("precious")
    (wired.workspace / "file_link").symlink_to(outside / "file")
    (wired.workspace / "dangling_link").symlink_to(outside / "new")
    (wired.workspace / "directory_link").symlink_to(outside / "deep")
    (wired.workspace / "loop").symlink_to("loop")
    os.mkfifo(wired.workspace / "pipe")
    before = sorted(wired.workspace.parent.rglob("*"))
    step = wired.step(path="gen", **{name: given})
    assert step.exit_code == 2
    assert f"ERROR: input {name.replace('_', '-')}: it " in step.log
    assert reason in step.log
    after = sorted(wired.workspace.parent.rglob("*"))
    assert [path for path in after if path not in before and wired.files not in path.parents] == []
    assert (outside / "file").read_text() == "precious"


def test_links_within_the_checkout_are_followed_and_named_for_what_they_are(wired: Runner) -> None:
    (wired.workspace / "build").mkdir()
    (wired.workspace / "link").symlink_to("build")
    step = wired.step(path="gen", sarif_file="link/./x.sarif", json_file=f"{wired.workspace}/build/../r.json")
    assert step.outputs["sarif-file"] == "build/x.sarif"
    assert step.outputs["json-file"] == "r.json"
    assert (wired.workspace / "build" / "x.sarif").is_file()


def test_one_name_for_two_reports_is_refused(wired: Runner) -> None:
    step = wired.step(path="gen", json_file="./mkcov.sarif")
    assert step.exit_code == 2
    assert "ERROR: inputs sarif-file and json-file name the same file" in step.log


@pytest.fixture
def strict_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("strict_umask")
def test_files_can_be_read_by_all_and_written_by_the_checkout_s_owner(wired: Runner) -> None:
    if ROOT:
        os.chown(wired.workspace, *OWNER)
    old = wired.workspace / "mkcov.sarif"
    old.write_text("{}")
    old.chmod(0o700)
    assert wired.step(path="gen", json_file="a/b/report.json").exit_code == 0
    owner = wired.workspace.stat()
    modes = {"mkcov.sarif": 0o644, "a": 0o755, "a/b": 0o755, "a/b/report.json": 0o644}
    for name, mode in modes.items():
        status = (wired.workspace / name).stat()
        assert stat.S_IMODE(status.st_mode) == mode, name
        assert (status.st_uid, status.st_gid) == (owner.st_uid, owner.st_gid), name
    if ROOT:
        assert (owner.st_uid, owner.st_gid) == OWNER


def test_whoever_may_not_give_files_away_keeps_them(wired: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "chown", raising(PermissionError(errno.EPERM, "Operation not permitted")))
    assert wired.step(path="gen").exit_code == 0


def test_a_read_only_checkout_is_one_line_and_no_verdict(
    unwired: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse = raising(OSError(errno.EROFS, "Read-only file system"))
    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    step = unwired.step(path="gen")
    assert (step.exit_code, step.outputs["verdict"], step.outputs["sarif-file"]) == (2, "error", "")
    assert [line for line in step.log.splitlines() if line.startswith("ERROR")] == [
        "ERROR: cannot write mkcov.sarif: Read-only file system"
    ]
    assert step.last_line.startswith("VERDICT: ERROR (exit 2): cannot write mkcov.sarif")
    assert "MK101 missing-wiring" in step.last_line
    assert "cannot write" in step.summary
    monkeypatch.setattr(Path, "mkdir", refuse)
    assert (
        "ERROR: cannot write a/b.json: Read-only file system"
        in unwired.step(path="gen", json_file="a/b.json").log
    )


def test_a_file_that_is_too_long_a_name_is_said_once_in_short(wired: Runner) -> None:
    step = wired.step(path="gen", json_file="x" * 300)
    assert step.exit_code == 2
    assert step.outputs["sarif-file"] == "mkcov.sarif"
    (line,) = [line for line in step.log.splitlines() if line.startswith("ERROR")]
    assert line == f"ERROR: cannot write {'x' * 120}… (300 characters): File name too long"


# --- the runner's own files -----------------------------------------------------------------------


def test_a_summary_joins_what_the_step_wrote_before(wired: Runner) -> None:
    wired.before = "# Before\n\nwithout a line end"
    assert wired.step(path="gen").summary.startswith("# Before\n\nwithout a line end\n## ✅ mkcov: PASS")


@pytest.mark.parametrize(
    "left, written", [(0, False), (summary.LEAST_BUDGET, False), (summary.LEAST_BUDGET + 1, True)]
)
def test_a_summary_takes_only_the_room_that_is_left(unwired: Runner, left: int, written: bool) -> None:
    unwired.before = "x" * (LIMIT - left)
    step = unwired.step(path="gen")
    assert step.exit_code == 1
    assert step.outputs["truncated"] == "true"
    assert len(step.summary.encode()) <= LIMIT
    assert ("mkcov: FAIL (exit 1)" in step.summary) == written
    assert ("no job summary: what this step wrote before" in step.log) != written


def test_outputs_that_cannot_be_written_are_no_verdict(unwired: Runner) -> None:
    environment = unwired.environment(path="gen") | {"GITHUB_OUTPUT": str(unwired.workspace)}
    result = run(environment)
    assert result.exit_code == 2
    assert result.stdout.endswith("\nERROR: cannot write the step's outputs: Is a directory\n")


def test_a_summary_that_cannot_be_written_is_no_verdict(unwired: Runner) -> None:
    environment = unwired.environment(path="gen") | {"GITHUB_STEP_SUMMARY": str(unwired.workspace)}
    result = run(environment)
    assert result.exit_code == 2
    assert "ERROR: cannot write the job summary: Is a directory\n" in result.stdout


def test_outside_of_a_workflow_it_does_the_same_with_what_is_there(
    unwired: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unwired.workspace / "gen")
    result = run({}, "action")
    assert result.exit_code == 1
    assert "graph . rank 0 of 2" in result.stdout
    assert (unwired.workspace / "gen" / "mkcov.sarif").is_file()


def test_a_workspace_that_is_not_mounted_says_so(wired: Runner) -> None:
    environment = wired.environment(path="gen") | {"GITHUB_WORKSPACE": str(wired.workspace / "nowhere")}
    result = run(environment)
    assert result.exit_code == 2
    assert re.search(r"ERROR: the workspace /.*/nowhere: No such file or directory\n", result.stdout)
    assert not (wired.workspace / "nowhere").exists()


# --- what no step may do --------------------------------------------------------------------------


def test_a_graph_of_hostile_names_prints_our_own_commands_only(runner: Runner) -> None:
    directory = "##[error]x ::error::`,<b>%0A"
    hostile_run(runner.workspace / directory)
    step = runner.step(path=directory, critical="*", json_file="report.json")
    assert step.exit_code == 1
    shown = commands(step.log)
    assert {command.name for command in shown} <= OURS
    assert shown[0].name == "group"
    assert [command.name for command in shown].index("endgroup") == len(shown) - 1
    assert step.outputs["truncated"] == "true"
    assert int(step.outputs["errors"]) > len(HOSTILE)


def test_what_is_cut_is_said(unwired: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert unwired.step(path="gen").outputs["truncated"] == "false"
    monkeypatch.setattr(sarif, "MOST_RESULTS", 2)
    step = unwired.step(path="gen")
    assert (step.exit_code, step.outputs["truncated"], step.outputs["errors"]) == (1, "true", "2")
    for told in (step.log, step.summary):
        assert "SARIF holds the 2 worst of 3 findings; the gate counts all" in told
    monkeypatch.undo()
    monkeypatch.setattr(annotations_report, "LIMIT", 1)
    assert unwired.step(path="gen").outputs["truncated"] == "true"
    assert unwired.step(path="gen", annotations="false").outputs["truncated"] == "false"


def test_it_needs_no_git_and_no_network(unwired: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = raising(AssertionError("no process and no socket is needed"))
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert unwired.step(path="gen").exit_code == 1


# --- bugs of ours ---------------------------------------------------------------------------------


CRASH = ValueError("oops\n::error::x")


@pytest.mark.parametrize(
    "module, function, message",
    [
        (sarif, "render", "SARIF: ValueError: oops"),
        (json_report, "render", "JSON: ValueError: oops"),
        (summary, "fitted", "the job summary: ValueError: oops"),
        (text, "render", "the log: ValueError: oops"),
        (annotations_report, "render", "the log: ValueError: oops"),
    ],
)
def test_a_report_that_crashes_is_exit_3_and_costs_only_itself(
    unwired: Runner, monkeypatch: pytest.MonkeyPatch, module: Any, function: str, message: str
) -> None:
    monkeypatch.setattr(module, function, raising(CRASH))
    step = unwired.step(path="gen", json_file="report.json")
    assert step.exit_code == 3
    assert (step.outputs["verdict"], step.outputs["exit-code"], step.outputs["errors"]) == ("error", "3", "2")
    assert f"INTERNAL ERROR: {message}" in step.log
    assert {command.name for command in commands(step.log)} <= OURS
    assert (step.outputs["sarif-file"] == "") == (module is sarif)
    assert (step.outputs["json-file"] == "") == (module is json_report)
    assert (step.summary == "") == (module is summary)


def test_an_audit_that_crashes_is_told_everywhere_and_closes_no_alert(
    unwired: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["mkcov_action.commands.action"], "audit", raising(CRASH))
    step = unwired.step(path="gen", json_file="report.json")
    assert (step.exit_code, step.outputs["verdict"], step.outputs["sarif-file"]) == (3, "error", "")
    assert r"INTERNAL ERROR: ValueError: oops\n::error::x" in step.log
    assert "internal error" in step.summary
    assert json.loads((unwired.workspace / "report.json").read_text())["exit_code"] == 3


# --- the entry ------------------------------------------------------------------------------------


def test_no_arguments_are_the_action_in_a_workflow_and_help_elsewhere(wired: Runner) -> None:
    assert "VERDICT: PASS" in run(wired.environment(path="gen")).stdout
    outside = run({})
    assert outside.exit_code == 2
    assert outside.stderr.startswith("Usage: ")
    assert "action" not in outside.stderr.partition("Commands:")[2]
    command_line = run(wired.environment(path="nowhere"), "check", str(wired.workspace / "gen"))
    assert command_line.exit_code == 0


def test_the_process_ends_with_the_gate_s_exit_code(unwired: Runner, tmp_path: Path) -> None:
    for variable in ("set_output", "step_summary"):
        (unwired.files / variable).touch()
    environment = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    environment |= unwired.environment(path="gen") | {"PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run(
        [sys.executable, "-m", "mkcov_action"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert outputs_in((unwired.files / "set_output").read_text())["verdict"] == "fail"
    assert (unwired.workspace / "mkcov.sarif").is_file()
