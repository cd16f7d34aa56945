"""mkcov show: what it prints of each kind of thing, how it is asked, and that names change nothing else."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from mkcov_action.commands import cli
from mkcov_action.schema import load
from tests.test_escaping import assert_harmless
from tools.golden import CORPUS_VIEWS, DEMO_VIEWS, ROOT, VIEWS, shown
from tools.graph_builder import decoder, write_ranks

SGR = re.compile(r"\x1b\[[0-9;]*m")
DOT = shutil.which("dot")
DEMO = ROOT / "demo" / "unwired"


def run(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["show", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def text(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@cache
def validator() -> jsonschema.Draft202012Validator:
    schema = load("show")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def document(*arguments: str | Path) -> dict[str, Any]:
    """The JSON of a call, which the schema that ships allows to the last key."""
    found: dict[str, Any] = json.loads(text(*arguments, "--json"))
    validator().validate(found)
    return found


def drawn(source: str) -> str:
    """The drawing as Graphviz makes it."""
    if DOT is None:
        pytest.skip("Graphviz is not installed")
    return subprocess.run(
        [DOT, "-Tsvg"], input=source, capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout


@pytest.mark.parametrize("name", DEMO_VIEWS)
def test_the_views_of_fixtures_are_what_is_shown(name: str) -> None:
    assert shown(ROOT, *DEMO_VIEWS[name]) == (VIEWS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CORPUS_VIEWS)
def test_the_views_of_real_graphs_are_what_is_shown(name: str, corpus: Path) -> None:
    assert shown(corpus, *CORPUS_VIEWS[name]) == (VIEWS / name).read_text(encoding="utf-8")


def test_no_golden_file_is_left_over() -> None:
    assert {path.name for path in VIEWS.iterdir()} == DEMO_VIEWS.keys() | CORPUS_VIEWS.keys()


def test_a_graph_of_61_layers_fits_on_a_screen() -> None:
    for view in (VIEWS / "corpus-many-layers.txt").read_text(encoding="utf-8").split("\n\ntensor "):
        assert len(view.splitlines()) <= 60


def test_the_figures_are_those_that_a_count_of_the_file_gives() -> None:
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    (stats,) = document(DEMO)["shown"]
    assert (stats["tasks"], stats["events"]) == (len(graph["all_tasks"]), len(graph["all_events"]))
    assert stats["first_tasks"] == len(graph["first_tasks"])
    for each in stats["task_types"]:
        number = each["task_type_number"]
        assert each["tasks"] == sum(task["task_type"] == number for task in graph["all_tasks"])
    for each in stats["event_types"]:
        number = each["event_type_number"]
        assert each["events"] == sum(event["event_type"] == number for event in graph["all_events"])
    assert sum(each["tasks"] for each in stats["layers"]) == len(graph["all_tasks"]) - 2
    assert len(stats["longest_chain"]) == 33


def test_every_task_shows_the_operands_and_events_of_the_file() -> None:
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    wanted = [argument for task in range(len(graph["all_tasks"])) for argument in ("--task", str(task))]
    views = document(DEMO, *wanted)["shown"]
    for view, task in zip(views, graph["all_tasks"], strict=True):
        tiles = [*(task["inputs"] or ()), *(task["outputs"] or ())]
        present = [slot for slot in view["slots"] if slot["present"]]
        assert [(slot["tensor"], slot["offset"]) for slot in present] == [
            (tile["base_ptr"], tile["offset"]) for tile in tiles
        ]
        assert [slot["dims"] for slot in present] == [tile["dims"] for tile in tiles]
        for side, key in (("waits_for", "dependent_event"), ("triggers", "trigger_event")):
            told = view[side] and int(view[side]["event"]["id"], 16)
            assert told == (None if task[key] == 0x7FFFFFFFFFFFFFFE else task[key])
        assert {field["name"]: field["value"] for field in view["metadata"]} == {
            field["name"]: task[field["name"]] for field in view["metadata"]
        }
        assert view["runs"]


def test_every_event_shows_as_many_triggers_and_waiting_tasks_as_the_file_has() -> None:
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    wanted = [argument for event in range(len(graph["all_events"])) for argument in ("--event", str(event))]
    for view in document(DEMO, *wanted)["shown"][2:]:
        for side, key in (("producers", "trigger_event"), ("consumers", "dependent_event")):
            tasks = sum(task[key] & 0xFFFFFFFF == view["event"] for task in graph["all_tasks"][2:]
                        if task[key] != 0x7FFFFFFFFFFFFFFE)  # fmt: skip
            assert sum(share["tasks"] for share in view[side]) == tasks
        assert view["gets"] == view["waits"]


def test_an_access_covers_the_bytes_of_its_tiles() -> None:
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    (view,) = document(DEMO, "--tensor", "rmsnorm_out")["shown"]
    for access in view["accesses"]:
        call, side = access["call"], f"{access['side']}s"
        tasks = graph["all_tasks"][call["first_task"] : call["last_task"] + 1]
        tiles = [task[side][access["slot"]] for task in tasks]
        ends = [
            tile["offset"]
            + 2 * (1 + sum((n - 1) * step for n, step in zip(tile["dims"], tile["strides"], strict=True)))
            for tile in tiles
        ]
        assert access["data_types"] == ["bfloat16"]
        assert (access["start"], access["stop"]) == (min(tile["offset"] for tile in tiles), max(ends))


@pytest.mark.parametrize(
    "given", ["TASK_LINEAR_SM100", "linear_sm100", "Linear_SM100:0", "task_linear_sm100 variant 0"]
)
def test_an_operator_goes_by_its_type_with_or_without_prefix_and_variant(given: str) -> None:
    views = document(DEMO, "--operator", given)["shown"]
    assert views[0]["operator"] == "TASK_LINEAR_SM100 variant 0"
    assert len(views) == (1 if given.endswith((":0", " 0")) else 2)


def test_what_is_asked_for_twice_or_by_patterns_is_shown_once() -> None:
    views = document(DEMO, "--tensor", "rope_*", "--tensor", "rope_cos", "--tensor", "ROPE_[cs]??")["shown"]
    assert [view["name"] for view in views] == ["rope_cos", "rope_sin"]


def test_several_things_are_shown_together_in_a_fixed_order() -> None:
    arguments = (
        "--event",
        "7",
        "--task",
        "11",
        "--layer",
        "0",
        "--operator",
        "silu_mul",
        "--tensor",
        "embed_out",
        "--stats",
    )
    kinds = [view["kind"] for view in document(DEMO, *arguments)["shown"]]
    assert kinds == ["stats", "tensor", "operator", "layer", "task", "event"]


def test_an_event_goes_by_its_id_too() -> None:
    by_id = document(DEMO, "--event", str(1 << 32 | 7), "--rank", "1")["shown"]
    assert by_id == document(DEMO, "--event", "7", "--rank", "1")["shown"]


def test_all_folds_nothing(tmp_path: Path) -> None:
    write_ranks(decoder(layers=30, ranks=1), tmp_path)
    folded, whole = (text(tmp_path, "--tensor", "rmsnorm_out", *more) for more in ((), ("--all",)))
    assert "layers 0-28: 29 alike, layer 0 is shown" in folded
    assert "layer 17\n" in whole
    assert len(whole.splitlines()) > 30 * 3 > len(folded.splitlines())


def test_layers_that_hang_together_differently_are_not_folded(tmp_path: Path) -> None:
    write_ranks(decoder(layers=6, ranks=1), tmp_path)
    path = tmp_path / "task_graph_0.json"
    graph = json.loads(path.read_text())
    (view,) = document(tmp_path, "--operator", "silu_mul")["shown"]
    call = next(row["call"] for row in view["calls"] if row["call"]["layer"] == 3)
    for task in graph["all_tasks"][call["first_task"] : call["last_task"] + 1]:
        task["dependent_event"] -= 1
    path.write_text(json.dumps(graph))
    told = text(tmp_path, "--operator", "silu_mul")
    assert "layers 0-2, 4-5: 5 alike, layer 0 is shown" in told
    assert "\nlayer 3\n" in told


@pytest.mark.parametrize(
    "arguments, said",
    [
        (
            ("--tensor", "rope_cosine"),
            "rope_cosine is no tensor of this rank; did you mean rope_sin or rope_cos?",
        ),
        (("--tensor", "nothing*"), "no tensor of this rank matches nothing*"),
        (("--operator", "linear_sm10"), "is no operator of this rank; did you mean TASK_LINEAR_SM100"),
        (("--operator", "linear_sm100:9"), "linear_sm100 has no variant 9 here, but 0-1"),
        (("--layer", "2"), "there is no layer 2, but layers 0-1"),
        (("--task", "61"), "there is no task 61, but tasks 0 to 60"),
        (("--event", "42"), "there is no event 42, but events 0 to 41"),
        (("--event", str(0x1E00000100000007)), "is event 7 of rank 1: --rank 1 shows that one"),
        (("--event", str(0x7FFFFFFFFFFFFFFE)), "there is no event 9223372036854775806"),
        (("--task", "9" * 5000), "Invalid value for '--task': '9999"),
        (("--tensor", ""), 'Invalid value for --tensor: "" is no tensor of this rank'),
        (("--rank", "5"), "there is no rank 5 here, but ranks 0, 1"),
        (("--dot", "x.dot"), "--dot draws a neighbourhood"),
        (("--task", "1", "--dot", ""), "the name of a file is empty"),
        (("--task", "1", "--dot", "-", "--json"), "both go to standard output"),
        (("--task", "1", "--dot", "no/such/directory/x.dot"), "cannot write --dot"),
        (("--tensor", "\x1b]0;x\x07\n::error::"), "is no tensor of this rank"),
    ],
)
def test_what_is_not_there_is_exit_2_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    result = run(DEMO, *arguments)
    errors = [line for line in result.stderr.splitlines() if not line.startswith("Usage: ")]
    assert (result.exit_code, len(errors), result.stdout) == (2, 1, "")
    assert said in errors[0]
    assert_harmless(result.stderr)


def test_the_lowest_rank_is_shown_and_no_other_is_read(tmp_path: Path) -> None:
    for name in ("kernel_1.cu", "task_graph_1.json"):
        shutil.copy(DEMO / name, tmp_path)
    (tmp_path / "kernel_2.cu").write_text("nothing")
    (tmp_path / "task_graph_2.json").write_text("{")
    assert document(tmp_path)["rank"] == 1
    broken = run(tmp_path, "--rank", "2")
    assert broken.exit_code == 2
    assert "rank 2 cannot be read: " in broken.stderr
    assert "kernel_2.cu: the kernel declares no tensor in any known form" in broken.stderr


@pytest.mark.parametrize(
    "missing, said",
    [("kernel_0.cu", "the kernel is missing"), ("task_graph_0.json", "the task graph is missing")],
)
def test_half_a_rank_is_exit_2_with_the_reason(missing: str, said: str, tmp_path: Path) -> None:
    for name in {"kernel_0.cu", "task_graph_0.json"} - {missing}:
        shutil.copy(DEMO / name, tmp_path)
    result = run(tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"rank 0 cannot be read: {said}" in result.stderr


def test_nothing_here_names_what_lies_nearby(tmp_path: Path) -> None:
    (tmp_path / "gen").mkdir()
    for name in ("kernel_0.cu", "task_graph_0.json"):
        shutil.copy(DEMO / name, tmp_path / "gen")
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "no generated artifacts here" in result.stderr
    assert "gen" in result.stderr


@pytest.mark.parametrize("suffix, pack", [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_a_compressed_rank_reads_like_a_plain_one(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    directory = tmp_path / "unwired"
    directory.mkdir()
    for name in ("kernel_0.cu", "task_graph_0.json"):
        (directory / f"{name}{suffix}").write_bytes(pack((DEMO / name).read_bytes()))
    assert (
        text(directory, "--tensor", "attn_out").splitlines()[3:]
        == text(DEMO, "--tensor", "attn_out").splitlines()[3:]
    )


def test_a_rank_that_only_the_file_tells_is_found_by_its_number(tmp_path: Path) -> None:
    shutil.copy(DEMO / "kernel_1.cu", tmp_path / "test.cu")
    shutil.copy(DEMO / "task_graph_1.json", tmp_path / "task_graph.json")
    assert document(tmp_path)["rank"] == document(tmp_path, "--rank", "1")["rank"] == 1
    result = run(tmp_path, "--rank", "0")
    assert (result.exit_code, "there is no rank 0 here, but rank 1" in result.stderr) == (2, True)


HOSTILE = {
    "control characters": "a\nb\x1b[31m\x07\u202e",
    "a workflow command": "\n::error::pwned",
    "a log command": "##[error]x",
    "quotes and escapes": 'x"];\\"\\N\\l\\',
    "HTML": "<<b>x</b>&amp;&lt;script>alert(1)</script>>",
    "10,000 characters": "n" * 10_000,
    "an empty name": "",
}


def renamed(directory: Path, name: str) -> Path:
    """The demo with a hostile name in place of attn_out."""
    directory.mkdir()
    shutil.copy(DEMO / "kernel_0.cu", directory)
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    for task in graph["all_tasks"]:
        for tile in (*(task["inputs"] or ()), *(task["outputs"] or ())):
            if tile["base_ptr"] == "attn_out":
                tile["base_ptr"] = name
    (directory / "task_graph_0.json").write_text(json.dumps(graph))
    return directory


ASKED = ("--operator", "*", "--layer", "0", "--task", "11", "--event", "7", "--stats")


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_changes_nothing_but_the_text(name: str, tmp_path: Path) -> None:
    directory, tame = renamed(tmp_path / "hostile", name), renamed(tmp_path / "tame", "tame")
    for more in ((), ("--all",)):
        told = text(directory, *ASKED, f"--tensor={name}", *more)
        assert_harmless(told)
        assert len(told.splitlines()) == len(text(tame, *ASKED, "--tensor=tame", *more).splitlines())
        assert max(map(len, told.splitlines())) < 2000
        assert SGR.sub("", text(directory, *ASKED, f"--tensor={name}", *more, "--color", "always")) == told
    printed = text(directory, *ASKED, f"--tensor={name}", "--json")
    assert printed.isascii()
    assert_harmless(printed)
    validator().validate(json.loads(printed))


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_text_in_a_drawing_too(name: str, tmp_path: Path) -> None:
    directory, tame = renamed(tmp_path / "hostile", name), renamed(tmp_path / "tame", "tame")
    sources = [text(each, "--layer", "0", "--event", "7", "--dot", "-") for each in (directory, tame)]
    assert_harmless(sources[0])
    assert len(sources[0].splitlines()) == len(sources[1].splitlines())
    pictures = [drawn(source) for source in sources]
    for tag in ("<g ", "<text ", "<ellipse ", "<path "):
        assert pictures[0].count(tag) == pictures[1].count(tag)
    assert "<b>" not in pictures[0]
    assert "<script" not in pictures[0]


def test_a_name_is_drawn_to_the_letter(tmp_path: Path) -> None:
    picture = drawn(text(renamed(tmp_path / "x", "a&lt;b<c>\\N"), "--event", "7", "--dot", "-"))
    assert r"&quot;a&amp;lt;b&lt;c&gt;\\N&quot;" in picture


@pytest.mark.parametrize("name", [name for name in (*DEMO_VIEWS, *CORPUS_VIEWS) if name.endswith(".dot")])
def test_graphviz_reads_every_drawing(name: str) -> None:
    source = (VIEWS / name).read_text(encoding="utf-8")
    picture = drawn(source)
    assert picture.count('class="node"') == len(re.findall(r"^  [ce]\d+ \[", source, re.MULTILINE))
    assert picture.count('class="edge"') == source.count(" -> ")
    assert picture.count("layer_3_moe_mask") == source.count("layer_3_moe_mask")


def test_a_drawing_is_bounded_and_says_what_it_left_out(tmp_path: Path) -> None:
    write_ranks(decoder(layers=30, ranks=1), tmp_path)
    source = text(tmp_path, "--tensor", "rmsnorm_out", "--operator", "*", "--dot", "-")
    assert len(re.findall(r"^  c\d+ \[", source, re.MULTILINE)) <= 40
    (left_out,) = re.findall(r"left out: (\d+) calls", source)
    assert int(left_out) > 100
    drawn(source)


def test_the_drawing_goes_to_its_file_beside_the_text(tmp_path: Path) -> None:
    path = tmp_path / "x.dot"
    told = text(DEMO, "--tensor", "attn_out", "--dot", path)
    assert told == text(DEMO, "--tensor", "attn_out")
    assert path.read_text(encoding="utf-8") == text(DEMO, "--tensor", "attn_out", "--dot", "-")
    on_error = run(DEMO, "--tensor", "attn_out", "--dot", "-").stderr
    assert on_error == told


@pytest.mark.parametrize("case", ["layers-wait-for-each-other", "task-waits-for-itself"])
def test_a_graph_that_goes_round_in_circles_has_no_critical_path(case: str) -> None:
    directory = ROOT / "rules" / "dependency-cycle" / "bad" / case
    (stats,) = document(directory)["shown"]
    assert stats["longest_chain"] is None
    assert "critical path: none" in text(directory)


@pytest.mark.parametrize(
    "directory", sorted(ROOT.glob("rules/*/bad/*")), ids=lambda path: f"{path.parts[-3]}/{path.name}"
)
def test_every_broken_fixture_is_shown_or_refused_and_never_crashes(directory: Path) -> None:
    result = run(
        directory,
        "--stats",
        "--tensor",
        "*",
        "--operator",
        "*",
        "--task",
        "0",
        "--task",
        "2",
        "--event",
        "2",
        "--json",
    )
    assert result.exit_code in {0, 2}, result.stderr
    if result.exit_code == 0:
        found = json.loads(result.stdout)
        validator().validate(found)
        run(directory, "--operator", "*", "--event", "2", "--dot", "-")
        for task in range(found["tasks"]):
            (view,) = json.loads(run(directory, "--task", str(task), "--json").stdout)["shown"]
            # What never runs has a cause, and what has one never runs.
            assert view["runs"] == (not view["behind"]) or task == 0


def test_a_directory_of_no_model_tasks_is_shown(tmp_path: Path) -> None:
    shutil.copy(DEMO / "kernel_0.cu", tmp_path)
    graph = json.loads((DEMO / "task_graph_0.json").read_text())
    graph["all_tasks"] = graph["all_tasks"][:2]
    (tmp_path / "task_graph_0.json").write_text(json.dumps(graph))
    assert "critical path: 0 operators" in text(tmp_path)
    assert "begins each iteration" in text(tmp_path, "--task", "1")
    assert run(tmp_path, "--operator", "*").exit_code == 2
