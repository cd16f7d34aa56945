"""What the two files do not tell is said, never passed over: one kernel text at a time is made unclear."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mkcov_action.commands import cli
from tools.rule_cases.case import Small
from tools.rule_cases.wiring import attention


def said(graph: Small, directory: Path, change: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """What was not checked, and the rules that found something, once the kernel's text is changed."""
    kernel, _ = graph.write(directory)
    text = kernel.read_text()
    assert change(text) != text
    kernel.write_text(change(text))
    result = CliRunner().invoke(cli, ["check", str(directory), "--json", "-", "--fail-on", "never"])
    report = json.loads(result.stdout)
    skipped = [f"{item['rule']}: {item['reason']}" for item in report["not_checked"]]
    return skipped, [finding["rule"] for finding in report["findings"]]


def findings_of(directory: Path) -> list[dict[str, Any]]:
    result = CliRunner().invoke(cli, ["check", str(directory), "--json", "-"])
    found: list[dict[str, Any]] = json.loads(result.stdout)["findings"]
    return found


def with_attention(*, rope: bool = True) -> Small:
    graph = Small()
    attention(graph, 0, rope=rope)
    return graph.head()


@pytest.mark.parametrize("end", ["task_desc->output_ptrs", "else if", 'all_tensors["nullptr"'])
def test_a_kernel_that_is_cut_off_is_an_error(tmp_path: Path, end: str) -> None:
    kernel, _ = Small.whole().write(tmp_path)
    text = kernel.read_text()
    kernel.write_text(text[: text.rindex(end) + 10])
    (finding,) = findings_of(tmp_path)
    assert finding["rule"] == "MK007"
    assert "the file is cut off" in finding["message"]
    assert finding["location"]["line"] == text[: text.rindex(end) + 10].rstrip().count("\n") + 1


def test_an_unclosed_comment_is_a_cut_off_kernel(tmp_path: Path) -> None:
    kernel, _ = Small.whole().write(tmp_path)
    kernel.write_text(kernel.read_text().replace("_execute_task(", "/* _execute_task(", 1))
    assert [finding["rule"] for finding in findings_of(tmp_path)] == ["MK007"]


def test_what_the_preprocessor_leaves_out_cuts_nothing_off(tmp_path: Path) -> None:
    kernel, _ = Small.whole().write(tmp_path)
    extra = "#ifdef A\nvoid f() {\n#else\nvoid f(int) {\n#endif\n}\n"
    kernel.write_text(kernel.read_text() + extra)
    assert "MK007" not in [finding["rule"] for finding in findings_of(tmp_path)]


@pytest.mark.parametrize("form", ['get_tensor("layer_0_proj")', "nullptr"])
def test_a_declaration_of_unknown_form_is_told(tmp_path: Path, form: str) -> None:
    def unclear(text: str) -> str:
        return text.replace('static_cast<char*>(model_tensors.at("layer_0_proj"))', form)

    skipped, _ = said(Small.whole(), tmp_path, unclear)
    assert skipped == [
        "MK102: layer_0_proj: declared in a form that is not known, so neither as attached nor as memory"
    ]


def test_a_fused_weight_whose_size_is_no_number_is_told(tmp_path: Path) -> None:
    graph = Small()
    graph.linear(graph.shuffled("layer_0_qkv", {"q": (8, 16), "k": (8, 16)}, groups=1), graph.x, graph.y)
    graph.head()
    skipped, _ = said(
        graph,
        tmp_path,
        lambda text: text.replace("cudaMalloc(&layer_0_qkv, 512)", "cudaMalloc(&layer_0_qkv, SIZE)"),
    )
    assert skipped == ["MK112: layer_0_qkv: its size is no number in the kernel"]


@pytest.mark.parametrize("rope", [True, False])
def test_attention_whose_flags_are_not_found_is_told(tmp_path: Path, rope: bool) -> None:
    graph = with_attention(rope=rope)
    skipped, found = said(
        graph, tmp_path, lambda text: text.replace("true,", "YES,").replace("false,", "NO,")
    )
    operator = "TASK_PAGED_ATTENTION_HOPPER variant 0"
    expected = [f"MK106: {operator}: its body does not tell whether it takes its optional steps"]
    if not rope:
        expected.append(
            f"MK107: {operator} has no rotary tables, and its body does not tell whether it takes the step"
        )
    assert skipped == expected
    assert "MK107" not in found
