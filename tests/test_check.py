"""`mkcov check` as its users run it: options, exit codes, outputs, and everything a disk can hold."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mkcov_action import kernel_source, loader
from mkcov_action.commands import cli
from mkcov_action.rules import RULES
from tools.builder import GraphBuilder, decoder, write_ranks
from tools.rule_cases.case import Small


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(cli, ["check", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def report(*arguments: object) -> dict[str, Any]:
    return json.loads(run(*arguments, "--json", "-").stdout)  # type: ignore[no-any-return]


def last_line(result: Result) -> str:
    return result.stdout.rstrip("\n").rpartition("\n")[2]


@pytest.fixture
def wired(tmp_path: Path) -> Path:
    write_ranks(decoder(ranks=2), tmp_path / "wired")
    return tmp_path / "wired"


@pytest.fixture
def unwired(tmp_path: Path) -> Path:
    write_ranks(decoder(ranks=2, wired=False), tmp_path / "unwired")
    return tmp_path / "unwired"


# --- exit codes and the gate ----------------------------------------------------------------------


def test_a_wired_graph_passes(wired: Path) -> None:
    result = run(wired)
    assert result.exit_code == 0
    assert last_line(result).startswith("VERDICT: PASS")


def test_an_unwired_graph_fails_and_names_the_tables(unwired: Path) -> None:
    result = run(unwired)
    assert result.exit_code == 1
    assert "[MISSING-WIRING] rope_cos: input_refs=0" in result.stdout
    assert last_line(result).startswith("VERDICT: FAIL")
    assert "MK101" in last_line(result)


@pytest.mark.parametrize("fail_on, code", [("error", 0), ("warning", 1), ("note", 1), ("never", 0)], ids=str)
def test_the_gate_fails_from_the_given_severity_on(tmp_path: Path, fail_on: str, code: int) -> None:
    graph = Small()
    graph.linear("layer_0_proj", graph.x, graph.scratch("lost", (2, 16)))
    graph.linear("layer_1_proj", graph.x, graph.y)
    graph.head().write(tmp_path)
    assert run(tmp_path, "--fail-on", fail_on).exit_code == code


def test_never_lets_errors_pass_but_not_unusable_paths(unwired: Path, tmp_path: Path) -> None:
    assert run(unwired, "--fail-on", "never").exit_code == 0
    assert run(unwired, tmp_path / "nowhere", "--fail-on", "never").exit_code == 2


def test_an_internal_error_names_rule_and_rank_and_costs_nothing_else(
    unwired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = next(rule for rule in RULES if rule.id == "MK102")

    def crash(context: Any) -> Any:
        if any(rank.number == 1 for rank in context.ranks):
            raise ValueError("oops")
        return iter(())

    monkeypatch.setattr(
        type(rule), "__call__", lambda self, context: crash(context) if self is rule else self.check(context)
    )
    result = run(unwired)
    assert result.exit_code == 3
    assert "rule MK102 unconsumed-tensor on rank 1: ValueError: oops" in result.stdout
    assert "[MISSING-WIRING] rope_cos" in result.stdout
    assert "MK101" in result.stdout
    assert "Traceback" not in result.output


def test_a_crash_while_reading_one_rank_is_exit_3_and_the_others_are_audited(
    wired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = kernel_source.read_kernel_source
    monkeypatch.setattr(
        loader, "read_kernel_source", lambda data: 1 / 0 if b"MY_RANK_1" in data else read(data)
    )
    kernel = wired / "kernel_1.cu"
    kernel.write_text("// MY_RANK_1\n" + kernel.read_text())
    result = run(wired)
    assert result.exit_code == 3
    assert "reading rank 1: ZeroDivisionError" in result.stdout
    assert "rank 0" in result.stdout


# --- what is audited ------------------------------------------------------------------------------


def test_without_a_path_the_working_directory_is_audited(
    wired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(wired)
    assert report()["graphs"][0]["graph"] == "."


def test_several_directories_are_several_graphs_and_the_worst_counts(wired: Path, unwired: Path) -> None:
    data = report(wired, unwired, "--root", wired.parent)
    assert [graph["graph"] for graph in data["graphs"]] == ["wired", "unwired"]
    assert {finding["graph"] for finding in data["findings"] if finding["severity"] == "error"} == {"unwired"}
    assert data["verdict"] == "fail"


def test_one_graph_joins_a_matrix_of_directories(tmp_path: Path) -> None:
    for rank, builder in enumerate(decoder(ranks=2)):
        builder.write(tmp_path / f"rank{rank}")
    arguments = (tmp_path / "rank0", tmp_path / "rank1", "--root", tmp_path)
    joined = report(*arguments, "--one-graph")
    assert [rank["rank"] for rank in joined["graphs"][0]["ranks"]] == [0, 1]
    assert "MK002" not in {finding["rule"] for finding in joined["findings"]}
    apart = report(*arguments)
    assert len(apart["graphs"]) == 2
    assert "MK002" in {finding["rule"] for finding in apart["findings"]}


@pytest.mark.parametrize("naming", ["kernel", "test_rank"])
@pytest.mark.parametrize("compress", [None, "xz", "gz"])
def test_namings_and_compressions_give_one_report(tmp_path: Path, naming: Any, compress: Any) -> None:
    write_ranks(decoder(ranks=2, wired=False), tmp_path / "gen", naming, compress, compress)
    data = report(tmp_path / "gen", "--root", tmp_path)
    bad = [finding for finding in data["findings"] if finding["severity"] == "error"]
    stem = "kernel_" if naming == "kernel" else "test_rank"
    assert {finding["location"]["uri"] for finding in bad} == {f"gen/{stem}0.cu"}
    assert [rank["rank"] for rank in data["graphs"][0]["ranks"]] == [0, 1]


def test_unnamed_files_take_their_rank_from_the_content(tmp_path: Path) -> None:
    for rank, builder in enumerate(decoder(ranks=2)):
        builder.write(tmp_path / str(rank), naming="test")
    data = report(tmp_path / "1", tmp_path / "0", "--one-graph")
    assert [rank["rank"] for rank in data["graphs"][0]["ranks"]] == [0, 1]
    assert [rank["rank"] for rank in report(tmp_path / "1", "--ranks", "1")["graphs"][0]["ranks"]] == [1]


@pytest.mark.parametrize(
    "ranks, expected", [("1", [1]), ("0,1", [0, 1]), ("0-1", [0, 1]), (" 1 , 0-0 ", [0, 1])]
)
def test_ranks_narrow_the_audit(wired: Path, ranks: str, expected: list[int]) -> None:
    assert [rank["rank"] for rank in report(wired, "--ranks", ranks)["graphs"][0]["ranks"]] == expected


def test_a_missing_half_fails_and_the_other_ranks_are_audited(wired: Path) -> None:
    (wired / "kernel_1.cu").unlink()
    data = report(wired)
    assert (data["exit_code"], data["verdict"]) == (1, "fail")
    assert [rank["audited"] for rank in data["graphs"][0]["ranks"]] == [True, False]


def test_when_no_rank_can_be_audited_there_is_no_verdict(wired: Path) -> None:
    for path in wired.glob("*.cu"):
        path.unlink()
    result = run(wired)
    assert result.exit_code == 2
    assert "MK001" in result.stdout


def test_nothing_found_is_no_success_and_says_where_there_is_something(wired: Path) -> None:
    result = run(wired.parent)
    assert result.exit_code == 2
    assert "wired" in result.stdout
    assert run(wired.parent, "--allow-empty").exit_code == 0


def test_a_link_that_leaves_the_directory_is_refused(wired: Path, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere.cu"
    (wired / "kernel_1.cu").rename(outside)
    (wired / "kernel_1.cu").symlink_to(outside)
    result = run(wired)
    assert result.exit_code == 2
    assert "symbolic link" in result.stdout


# --- options --------------------------------------------------------------------------------------


def test_critical_replaces_the_default_and_plus_adds(unwired: Path) -> None:
    def critical(*arguments: str) -> set[str]:
        return {item["name"] for item in report(unwired, *arguments)["tensors"] if item["critical"]}

    assert critical() == {"rope_cos", "rope_sin"}
    assert critical("--critical", "embed_*, LM_HEAD") == {"embed_tokens", "embed_out", "lm_head"}
    assert critical("--critical", "+lm_head") == {"rope_cos", "rope_sin", "lm_head"}
    assert critical("--critical", "+lm_head", "--critical", "+embed_out") == {
        "rope_cos",
        "rope_sin",
        "lm_head",
        "embed_out",
    }
    assert critical("--critical", "lm_head", "--critical", "embed_out") == {"lm_head", "embed_out"}


@pytest.mark.parametrize(
    "option, value, reason",
    [
        ("--critical", "", "it names no tensor"),
        ("--critical", "+ ,", "it names no tensor"),
        ("--ranks", ",", "it names no rank"),
        ("--select", "", "is no rule's id"),
        ("--json", "", "the name of a file is empty"),
        ("--root", "nowhere", "does not exist"),
    ],
)
def test_what_names_nothing_is_a_usage_error(wired: Path, option: str, value: str, reason: str) -> None:
    result = run(wired, option, value)
    assert result.exit_code == 2
    assert f"Invalid value for {option}" in result.stderr.replace("'", "")
    assert reason in result.stderr


def test_an_empty_directory_name_is_not_the_working_directory(
    wired: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(wired)
    assert run().exit_code == 0
    unset = run("")
    assert unset.exit_code == 2
    assert "ERROR: the name of a directory is empty" in unset.stdout


def test_deselected_rules_are_told_in_every_report(wired: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    result = run(wired, "--ignore", "MK105", "--summary", summary)
    assert "not run: MK105 (1 rule deselected)" in result.stdout.splitlines()
    assert "- not run: `MK105` (1 rule deselected)" in summary.read_text()
    assert report(wired, "--ignore", "MK105")["deselected"] == ["MK105"]
    assert report(wired)["deselected"] == []


def test_two_reports_cannot_go_to_one_place(wired: Path, tmp_path: Path) -> None:
    one = tmp_path / "one"
    for arguments in (("--json", "-", "--sarif", "-"), ("--json", one, "--summary", one)):
        result = run(wired, *arguments)
        assert result.exit_code == 2
        assert "both go to" in result.stderr
    assert not one.exists()


def test_a_report_that_cannot_be_written_is_part_of_the_verdict(wired: Path, tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    result = run(wired, "--json", tmp_path / "none" / "x.json", "--summary", summary)
    assert result.exit_code == 2
    assert last_line(result).startswith("VERDICT: ERROR (exit 2): cannot write --json")
    assert summary.is_file()  # one that fails does not cost the others


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_or_closed_standard_output_is_told_in_one_line(wired: Path) -> None:
    command = f"{sys.executable} -m mkcov_action check {wired}"
    for redirection, reason in ((">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")):
        result = subprocess.run(
            ["sh", "-c", command + redirection], capture_output=True, text=True, check=False
        )
        assert (result.returncode, result.stderr) == (
            2,
            f"Error: cannot write to standard output: {reason}\n",
        )


def test_ranks_that_are_not_there_are_told_from_no_artifacts(tmp_path: Path) -> None:
    write_ranks(decoder(ranks=2), tmp_path / "gen")
    unnamed = tmp_path / "unnamed"
    kernel, task_graph = Small.whole().write(unnamed)
    kernel.rename(unnamed / "test.cu")
    task_graph.rename(unnamed / "task_graph.json")
    for directory, offered in (("gen", "ranks 0, 1"), ("unnamed", "rank 0")):
        result = run(tmp_path / directory, "--ranks", "7", "--allow-empty")
        assert result.exit_code == 2
        assert f"it holds none of the ranks asked for, but {offered}" in last_line(result)
        assert last_line(result).count(directory) == 1


def test_an_empty_directory_among_those_of_one_graph_is_an_error(wired: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = run(wired, empty, "--one-graph", "--root", tmp_path)
    assert result.exit_code == 2
    assert "empty: no generated artifacts here" in last_line(result)
    assert run(wired, empty, "--one-graph", "--allow-empty").exit_code == 0


def test_a_critical_pattern_that_matches_nothing_is_said(wired: Path) -> None:
    findings = report(wired, "--critical", "nosuch")["findings"]
    assert [finding["message"] for finding in findings if finding["rule"] == "MK111"] == [
        "the critical pattern nosuch matches no declared tensor"
    ]


@pytest.mark.parametrize(
    "options, expected",
    [
        (["--select", "MK101"], {"MK101"}),
        (["--select", "missing-wiring"], {"MK101"}),
        (["--select", "mk1", "--ignore", "MK109,MK110"], {"MK101"}),
        (["--ignore", "MK101", "--ignore", "dead-scratch,MK109"], {"MK102"}),
        (["--ignore", "MK1"], set()),
    ],
    ids=str,
)
def test_rules_are_selected_by_id_prefix_or_name(
    unwired: Path, options: list[str], expected: set[str]
) -> None:
    assert {finding["rule"] for finding in report(unwired, *options)["findings"]} == expected


def test_the_gate_cannot_be_emptied(wired: Path) -> None:
    (wired / "task_graph_1.json").write_text("{")
    for options in (["--ignore", "MK"], ["--select", "MK101"]):
        assert "MK003" in {finding["rule"] for finding in report(wired, *options)["findings"]}
    refused = run(wired, "--ignore", "malformed-json")
    assert refused.exit_code == 2
    assert "MK003 malformed-json cannot be switched off" in refused.output


@pytest.mark.parametrize(
    "options, message",
    [
        (["--ranks", "-1"], "--ranks"),
        (["--ranks", "a"], "--ranks"),
        (["--ranks", "3-1"], "--ranks"),
        (["--ranks", "0-99999999"], "--ranks"),
        (["--select", "missing-wirin"], "did you mean missing-wiring?"),
        (["--ignore", "MK9"], "--ignore"),
        (["--fail-on", "fatal"], "--fail-on"),
        (["--workers", "0"], "--workers"),
        (["--nosuch"], "nosuch"),
        (["--task-types", "nosuch.h"], "nosuch.h"),
        (["--json", "no/such/directory/report.json"], "cannot write"),
        (["--select", "\x1b[31m\n::error::x"], "--select"),
    ],
    ids=str,
)
def test_wrong_usage_is_exit_2_and_one_clear_message(wired: Path, options: list[str], message: str) -> None:
    result = run(wired, *options)
    assert result.exit_code == 2
    assert message in result.output
    assert "\x1b" not in result.output
    assert not re.search(r"^::", result.output, re.MULTILINE)


def test_task_types_come_from_a_forks_header(tmp_path: Path) -> None:
    graph = Small()
    graph.operator("TASK_FORK", [graph.x], [graph.model("result", (2, 16))], number=242, dispatch=False)
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(tmp_path)
    header = tmp_path / "runtime_header.h"
    header.write_text("enum TaskType {\n  TASK_FORK_ROPE = 242, // ours\n};\n")

    def producer(*arguments: object) -> str:
        tensors = {item["name"]: item for item in report(tmp_path, *arguments)["tensors"]}
        return str(tensors["result"]["producers"][0]["name"])

    assert producer() == "TYPE_242"
    assert producer("--task-types", header) == "TASK_FORK_ROPE"


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_output_does_not_depend_on_the_workers(unwired: Path, workers: int) -> None:
    arguments = (unwired, "--json", "-", "--all")
    alone = run(*arguments)
    shared = run(*arguments, "--workers", workers)
    assert (alone.stdout, alone.stderr, alone.exit_code) == (shared.stdout, shared.stderr, shared.exit_code)


def test_all_lists_every_tensor(wired: Path) -> None:
    names = [item["name"] for item in report(wired)["tensors"]]
    shown = run(wired, "--all").stdout
    assert len(names) > 30
    assert all(name in shown for name in names)


def test_json_goes_to_a_file_or_to_standard_output_alone(wired: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    result = run(wired, "--json", path)
    assert "VERDICT" in result.stdout
    piped = run(wired, "--json", "-")
    assert json.loads(piped.stdout) == json.loads(path.read_text())
    assert "VERDICT" in piped.stderr
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_json_is_written_on_failure_and_on_error_too(unwired: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    assert run(unwired, "--json", path).exit_code == json.loads(path.read_text())["exit_code"] == 1
    assert run(tmp_path / "nowhere", "--json", path).exit_code == 2
    assert json.loads(path.read_text())["verdict"] == "error"


def test_one_run_writes_every_output_that_was_asked_for(unwired: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    names = {"--json": "a.json", "--sarif": "b.sarif", "--summary": "c.md"}
    files = [part for option, name in names.items() for part in (option, out / name)]
    result = run(unwired, *files, "--annotations")
    assert result.exit_code == 1
    assert sorted(path.name for path in out.iterdir()) == sorted(names.values())
    assert json.loads((out / "a.json").read_text())["exit_code"] == 1
    rules = [item["ruleId"] for item in json.loads((out / "b.sarif").read_text())["runs"][0]["results"]]
    assert rules[:2] == ["MK101", "MK101"]
    assert "FAIL" in (out / "c.md").read_text().splitlines()[0]
    commands = [line for line in result.stdout.splitlines() if line.startswith("::")]
    assert [command.split(" ")[0] for command in commands[:2]] == ["::error", "::error"]
    assert last_line(result).startswith("VERDICT: FAIL")


@pytest.mark.parametrize("option", ["--json", "--sarif", "--summary"])
def test_a_report_on_standard_output_has_it_to_itself(unwired: Path, tmp_path: Path, option: str) -> None:
    run(unwired, option, tmp_path / "file")
    piped = run(unwired, option, "-", "--annotations")
    assert piped.stdout == (tmp_path / "file").read_text()
    assert "VERDICT" in piped.stderr
    assert run(unwired, option, "-", "--json" if option != "--json" else "--sarif", "-").exit_code == 2


def test_without_a_verdict_there_is_a_summary_and_no_sarif(tmp_path: Path) -> None:
    """An empty SARIF would close every alert."""
    result = run(tmp_path / "nowhere", "--sarif", tmp_path / "a.sarif", "--summary", tmp_path / "b.md")
    assert result.exit_code == 2
    assert not (tmp_path / "a.sarif").exists()
    assert "ERROR" in (tmp_path / "b.md").read_text()


def test_a_report_that_cannot_be_written_does_not_cost_the_others(wired: Path, tmp_path: Path) -> None:
    result = run(wired, "--json", tmp_path / "no" / "a.json", "--summary", tmp_path / "b.md")
    assert result.exit_code == 2
    assert (tmp_path / "b.md").exists()


def test_timings_go_to_standard_error_only(wired: Path) -> None:
    result = run(wired, "--timings")
    assert re.search(r"read +\d+\.\d+ s", result.stderr)
    assert result.stdout == run(wired).stdout


def test_root_shortens_names_and_no_output_holds_an_absolute_path(unwired: Path, tmp_path: Path) -> None:
    for root in (tmp_path, unwired, tmp_path / "elsewhere"):
        root.mkdir(exist_ok=True)
        result = run(unwired, "--root", root, "--json", "-")
        assert str(tmp_path) not in result.stdout
    location = report(unwired, "--root", tmp_path)["findings"][0]["location"]
    assert location["uri"] == "unwired/kernel_0.cu"


def test_color_is_asked_for_or_left_out(wired: Path) -> None:
    plain = run(wired).stdout
    colored = run(wired, "--color", "always").stdout
    assert "\x1b[" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain != colored


# --- what a disk can hold -------------------------------------------------------------------------


def hostile_names() -> list[str]:
    return [
        'quote"d',
        "new\nline",
        "carriage\r::error::x",
        "\x1b[31mred\x07\x00",
        "::error::title",
        "##[error]x",
        "<img src=x onerror=alert(1)>",
        "`code` | table",
        "\u202egnp.exe\u2066",
        "x" * 10_000,
        "a\\b",
        "%0A::error::",
    ]


def with_names(out: Path, names: list[str]) -> Path:
    """Each name declared as a model tensor that nothing reads, and named by a task as well."""
    graph = Small()
    for name in names:
        text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\0", "\\0")
        graph.raw_declaration(
            f'char *v = static_cast<char*>(model_tensors.at("v"));\n  all_tensors["{text}"] = v;'
        )
    graph.linear("layer_0_proj", graph.x, graph.y)
    for index, name in enumerate(names):
        graph.linear(graph.undeclared(f"undeclared {index} {name}", (16, 16)), graph.x, graph.y)
    graph.head().write(out)
    return out


def test_hostile_names_change_nothing_but_the_text(tmp_path: Path) -> None:
    names = hostile_names()
    directory = with_names(tmp_path / "gen", names)
    for arguments in ([directory, "--all"], [directory, "--all", "--color", "always", "--critical", "*"]):
        result = run(*arguments)
        assert result.exit_code == 1
        text = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028]", text)
        assert not re.search(r"^\s*::|##\[", text, re.MULTILINE)
    data = report(directory)
    assert {item["name"] for item in data["tensors"]} >= set(names)
    (undeclared,) = (f for f in data["findings"] if f["rule"] == "MK104")
    assert len(undeclared["members"]) == len(names)


@pytest.mark.parametrize("artifact", ["kernel_0.cu", "task_graph_0.json"])
@pytest.mark.parametrize(
    "content",
    {
        "empty": b"",
        "zeros": b"\0" * 1000,
        "latin-1": b"\xe9\xff\xfe" * 100,
        "braces": b"{" * 100_000,
        "brackets": b"[" * 100_000,
        "digits": b"9" * 400,
        "many digits": b"9" * 10_000,
        "nan": b'{"all_tasks": [NaN]}',
        "one long line": b" " * 100_000_000 + b"x",
        "quotes": b'"' * 1_000_001,
        "comments": b"/*" * 1_000_000,
    }.items(),
    ids=lambda item: item[0],
)
def test_any_content_is_a_finding_and_never_a_traceback(
    wired: Path, artifact: str, content: tuple[str, bytes]
) -> None:
    (wired / artifact).write_bytes(content[1])
    result = run(wired)
    assert result.exit_code == 1
    assert re.search(r"MK00[345]", result.stdout)
    assert len(result.stdout) < 100_000


@pytest.mark.parametrize("artifact", ["kernel_0.cu", "task_graph_0.json"])
@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling link", "loop"])
def test_what_is_no_file_is_a_finding(wired: Path, artifact: str, kind: str) -> None:
    path = wired / artifact
    path.unlink()
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere" if kind == "dangling link" else artifact)
    result = run(wired)
    assert result.exit_code == 1
    assert "MK007" in result.stdout


def as_nobody(directory: Path) -> tuple[int, str]:
    """Exit code and output of `mkcov check` in a child that is not root, for whom permissions hold."""
    reading, writing = os.pipe()
    child = os.fork()  # not a new interpreter: that may lie where only root may read
    if child == 0:
        os.close(reading)
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        result = CliRunner().invoke(cli, ["check", str(directory)])
        os.write(writing, result.output.encode()[:60_000])
        os._exit(result.exit_code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        output = stream.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


@pytest.mark.parametrize("name", ["kernel_0.cu", "task_graph_0.json", ""])
def test_no_permission_is_told(name: str) -> None:
    with tempfile.TemporaryDirectory() as parent:
        Path(parent).chmod(0o755)
        directory = Path(parent, "gen")
        write_ranks(decoder(ranks=2), directory)
        run(directory)  # every module is imported before the child loses its rights
        (directory / name).chmod(0)
        try:
            code, output = as_nobody(directory)
        finally:
            (directory / name).chmod(0o755)
    assert code == (1 if name else 2), output
    assert ("MK007" if name else "Permission denied") in output


def test_the_module_runs_as_the_command_does(wired: Path) -> None:
    command = [sys.executable, "-m", "mkcov_action"]
    result = subprocess.run([*command, "check", str(wired)], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"mkcov \d+\.\d+\.\d+\n", version.stdout)


def test_a_terminal_without_unicode_gets_escapes(tmp_path: Path) -> None:
    graph = Small()
    graph.model("größe_rope_cos", (2, 2))
    graph.linear("layer_0_proj", graph.x, graph.y)
    graph.head().write(tmp_path)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "mkcov_action", "check", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert result.returncode == 1
    assert b"gr\\xf6\\xdfe_rope_cos" in result.stdout


def test_a_graph_of_one_type_of_operator_without_tensors_is_read(tmp_path: Path) -> None:
    graph = GraphBuilder()
    graph.model("x", (2, 2))
    graph.operator("TASK_IDENTITY", [None], [None], waits_for=())
    graph.write(tmp_path)
    assert run(tmp_path).exit_code == 1  # x is unconsumed


def test_an_interrupt_ends_the_run_in_one_line(tmp_path: Path) -> None:
    directory = tmp_path / "gen"
    write_ranks(decoder(ranks=2, tasks=100_000), directory)
    command = [sys.executable, "-m", "mkcov_action", "check", str(directory), "--workers", "2"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while process.poll() is None and not children.read_text():
            time.sleep(0.01)
        time.sleep(0.1)  # earlier, the signal itself may end the process, which is as good
        os.killpg(process.pid, signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    ended = (process.returncode, output, errors.strip())
    assert ended in [(130, "", "mkcov: interrupted"), (-signal.SIGINT, "", "")]


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(unwired: Path) -> None:
    command = f"{sys.executable} -m mkcov_action check {unwired} --all | head -n 1 >/dev/null; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("1\n", "")


def test_an_error_of_our_own_is_one_line_and_exit_3(wired: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mkcov_action.commands.check"], "audit", lambda *_, **__: 1 / 0)
    result = run(wired)
    assert result.exit_code == 3
    assert result.output.startswith(
        "mkcov: internal error: ZeroDivisionError: division by zero (test_check.py:"
    )


def test_no_command_is_help_and_no_success() -> None:
    result = CliRunner().invoke(cli, [])
    assert result.exit_code == 2
    assert "check" in result.output


def test_a_pipe_is_no_header_and_is_not_waited_for(wired: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    result = run(wired, "--task-types", tmp_path / "pipe")
    assert result.exit_code == 2
    assert "not a regular file" in last_line(result)


def test_files_of_two_runs_are_one_finding(tmp_path: Path) -> None:
    (other,) = decoder(ranks=1)
    _, task_graph = other.write(tmp_path / "other")
    Small.whole().write(tmp_path / "gen")
    task_graph.rename(tmp_path / "gen" / "task_graph_0.json")
    found = [finding for finding in report(tmp_path / "gen")["findings"] if finding["rule"] == "MK104"]
    assert len(found) == 1
    assert "the two files are hardly of one run" in found[0]["message"]
    assert len(found[0]["members"]) > 20
