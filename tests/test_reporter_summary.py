from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.finding import Confidence, Failure, Location, NotChecked, Severity
from mkcov_action.report import Coverage, RankRefs, Report, Status, TensorReport, Verdict
from mkcov_action.reporters import summary
from mkcov_action.reporters.clean import MESSAGE_LIMIT, NAME_LIMIT, clean
from mkcov_action.reporters.markdown import code, fence_for, prose, row, table
from tests.render_markdown import browser, page, screenshot, to_html
from tests.reports import finding, graph, rank, report, reports, tensor, texts

UNWIRED = finding("MK102", "unconsumed-tensor", tensor_name="layer_1_k_norm", members=("layer_1_k_norm",))


def render(shown: Report) -> str:
    return summary.render(shown)


def part(markdown: str, title: str) -> str:
    """What stands below a heading, up to the next."""
    found = re.search(rf"^### {re.escape(title)}.*?\n(.*?)(?=^###? |\Z)", markdown, re.DOTALL | re.MULTILINE)
    assert found, f"no {title} in {markdown}"
    return found[1]


def decoder(layers: int, *, unwired: tuple[str, ...] = (), graph: str = "gen") -> tuple[TensorReport, ...]:
    """The attached tensors of a small model."""
    names = ["embed", *(f"layer_{layer}_{part}" for layer in range(layers) for part in ("k_norm", "q_norm"))]
    return tuple(
        tensor(name, Status.UNCONSUMED if name in unwired else Status.OK, graph=graph, refs=(1, 0))
        for name in names
    )


# --- verdict --------------------------------------------------------------------------------------


def test_the_first_line_is_the_verdict_with_exit_code_and_reason() -> None:
    shown = render(report(Verdict.FAIL, findings=(finding(),)))
    assert shown.startswith("## ❌ mkcov: FAIL (exit 1): 1 error; `MK101` missing-wiring (1)\n")
    passed = render(report(tensors=(tensor("rope_cos", critical=True),)))
    assert passed.startswith(
        "## ✅ mkcov: PASS (exit 0): no findings; 1 critical tensor wired; structure only"
    )


def test_a_pass_over_nothing_has_no_tick() -> None:
    assert render(report(graphs=())).startswith("## ⚠️ mkcov: PASS (exit 0): no findings; nothing was audited")


def test_a_run_without_verdict_says_why_first() -> None:
    broken = report(
        Verdict.ERROR,
        graphs=(),
        failures=(
            Failure(message="gen is no directory"),
            Failure(message="rule MK109 broke: <b>", internal=True),
        ),
        warnings=("gen lies outside the root",),
    )
    shown = render(broken)
    assert shown.startswith("## ⛔ mkcov: ERROR (exit 2): internal error: rule `MK109` broke: `<b>`; 1 more")
    failures = "\n- **internal error:** rule `MK109` broke: `<b>`\n- gen is no directory\n\n"
    assert part(shown, "⛔ No verdict, because") == failures
    assert part(shown, "Remarks on this run") == "\n- gen lies outside the root\n"


# --- ranks ----------------------------------------------------------------------------------------


def test_ranks_with_the_same_figures_share_a_line() -> None:
    odd = rank(4, coverage=Coverage(declared=1_234, model_tensors=1, model_tensors_consumed=1))
    half = replace(rank(5, audited=False), kernel=None)
    ranks = graph(*map(rank, range(4)), odd, half, rank(6, audited=False), world_size=8)
    lines = part(render(report(graphs=(ranks,))), "Ranks").splitlines()
    assert lines[3:7] == [
        "| `gen` | 0-3 of 8 | 7,242 | 95 | 91 | 84 | 36 | 6 (1.2 MiB) | **45 of 47** |",
        "| `gen` | 4 of 8 | 7,242 | 95 | 1,234 | 0 | 0 | 0 | 1 of 1 |",
        "| `gen` | 5 of 8 **not audited**: no kernel |  |  |  |  |  |  |  |",
        "| `gen` | 6 of 8 **not audited**: see the findings |  |  |  |  |  |  |  |",
    ]


def test_tensors_that_differ_by_rank_are_listed_by_what_the_ranks_say() -> None:
    refs = [
        RankRefs(
            rank=number,
            input_refs=inputs,
            output_refs=0,
            status=Status.OK if inputs else Status.MISSING_WIRING,
        )
        for number, inputs in enumerate((156, 0, 0))
    ]
    lost = tensor("rope_cos", Status.MISSING_WIRING, ranks=(0, 1, 2), by_rank=tuple(refs))
    alone = tensor("odd", ranks=(0,), refs=(1, 2))
    shown = render(report(graphs=(graph(*map(rank, range(3))),), tensors=(lost, alone)))
    assert "<summary>Ranks differ about 2 tensors</summary>" in shown
    for line in (
        "| `rope_cos` | 0 | 156 | 0 | ok |\n",
        "| `rope_cos` | 1-2 | 0 | 0 | missing-wiring |\n",
        "| `odd` | declared on rank 0 only | 1 | 2 | ok |\n",
    ):
        assert line in shown


# --- findings -------------------------------------------------------------------------------------


def test_errors_say_what_where_why_and_how_to_mend_it() -> None:
    twins = [
        finding(tensor_name=name, message=f"{name} is declared and no task reads it", consequence="it rots")
        for name in ("rope_cos", "lse")
    ]
    assert part(render(report(Verdict.FAIL, findings=tuple(twins))), "❌ 2 errors") == (
        "\n**`MK101` missing-wiring**\n\n"
        "- `rope_cos` is declared and no task reads it · `gen/kernel_0.cu:110`\n"
        "- `lse` is declared and no task reads it · `gen/kernel_0.cu:110`\n"
        "\n**Effect (each of these 2):** it rots<br>\n"
        "**Fix:** pass `rope_cos` to the layer that applies rotary embedding, then generate again\n\n"
    )


def test_warnings_follow_errors_and_notes_are_folded() -> None:
    found = (
        finding(),
        finding("MK105", "ignored-slot", Severity.WARNING),
        finding("MK109", "write-only", Severity.NOTE),
    )
    shown = render(report(Verdict.FAIL, findings=found))
    headings = re.findall(r"^### (.*)", shown, re.MULTILINE)
    assert headings[:3] == ["❌ 1 error", "⚠️ 1 warning", "Ranks"]
    open_part, _, folded = shown.partition("<summary>All 3 findings</summary>")
    assert "MK109" not in open_part
    assert "- 📝 note `MK109` write-only `gen/kernel_0.cu:110`: `rope_cos` is attached" in folded


def test_the_full_list_has_confidence_ranks_members_and_related_places() -> None:
    full = finding(
        severity=Severity.NOTE,
        confidence=Confidence.POSSIBLE,
        ranks=(1, 2),
        members=tuple(f"layer_{number}_gate" for number in range(14)),
        location=Location(uri="my%20gen/task_graph_1.json", line=7, column=3),
        related=tuple(Location(uri="gen/kernel_1.cu", line=number, text="a task") for number in range(1, 8)),
    )
    shown = render(report(graphs=(graph(*map(rank, range(4))),), findings=(full,)))
    assert "missing-wiring (possible, ranks 1-2 of 0-3) `my gen/task_graph_1.json:7:3`: `rope_cos`" in shown
    assert "  - 14 members: `layer_0_gate`, " in shown
    assert "`layer_11_gate` and 2 more\n" in shown
    assert "  - see `gen/kernel_1.cu:5`: a task\n  - and 2 more places\n" in shown


def test_many_causes_and_many_findings_of_one_are_cut_in_the_open_and_whole_in_the_fold() -> None:
    causes = [finding(tensor_name=f"c{number}", consequence=f"effect {number}") for number in range(12)]
    alike = [finding(tensor_name=f"t{number}", consequence="a last effect") for number in range(9)]
    shown = render(report(Verdict.FAIL, findings=(*alike, *causes)))
    errors, _, folded = shown.partition("### Ranks")
    assert "- … and 1 more like these, see all findings below\n" in errors
    assert "… and 3 more, see all findings below\n" in errors
    assert folded.count("\n- ❌ error ") == 21


def test_a_name_without_end_leaves_the_rest_of_the_sentence() -> None:
    name = "n" * 10_000
    shown = render(
        report(Verdict.FAIL, findings=(finding(message=f"{name} is read by none", tensor_name=name),))
    )
    cut = f"`{'n' * NAME_LIMIT}... (10,000 characters)` is read by none"
    assert f"- {cut} · " in shown


# --- the map of layers ----------------------------------------------------------------------------


def test_layers_stand_side_by_side_and_the_family_with_a_hole_comes_first() -> None:
    shown = report(
        Verdict.FAIL, tensors=decoder(12, unwired=("layer_1_k_norm", "layer_11_k_norm")), findings=(UNWIRED,)
    )
    assert part(render(shown), "Tensors by family and layer").partition("<details>")[0] == (
        "\n```diff\n"
        "                  wired  layer 0    10\n"
        "- layer_*_k_norm  10/12  ●X●●●●●●●● ●X\n"
        "  layer_*_q_norm  12/12  ●●●●●●●●●● ●●\n"
        "\n"
        "  embed             1/1  ●\n"
        "```\n"
        "\n`●` wired · `X` not wired\n\n"
    )


def test_a_layer_without_the_tensor_is_no_hole_and_members_of_a_layer_share_its_mark() -> None:
    experts = [
        tensor(f"model.layers.{layer}.w{part}", Status.OK if (layer, part) != (4, 2) else Status.UNCONSUMED)
        for layer in range(3, 6)
        for part in (1, 2)
    ]
    norms = [tensor(f"model.layers.{layer}.norm") for layer in range(6)]
    shown = render(report(tensors=(*norms, *experts)))
    assert "- model.layers.*.w*      5/6  ···●X●\n" in shown
    assert "  model.layers.*.norm    6/6  ●●●●●●\n" in shown
    assert "`·` not in this layer" in shown


def test_scratch_is_on_the_map_only_where_a_finding_names_it() -> None:
    sound, dead = tensor("sound", origin="scratch"), tensor("idle", Status.DEAD, origin="scratch")
    flawed = tensor("racy", origin="scratch", refs=(1, 1))
    lost = tensor("void", Status.UNINITIALISED, origin="symmetric", refs=(1, 0))
    carried = tensor("step", Status.UNCONSUMED)
    found = (
        finding("MK402", "unordered-read", Severity.WARNING, tensor_name=None, members=("racy",)),
        finding("MK102", "unconsumed-tensor", Severity.NOTE, tensor_name="step"),
        finding("MK110", "dead-scratch", Severity.NOTE, tensor_name="idle"),
    )
    coverage = part(
        render(report(tensors=(sound, dead, flawed, lost, carried), findings=found)), "Tensors by family"
    )
    assert coverage.startswith("\n```diff\n! racy    1/1  !\n! void    1/1  !\n  step    0/1  ○\n```\n")


def test_many_families_without_a_flaw_are_folded_and_counted() -> None:
    wired = [
        tensor(f"layer_{layer}_w{letter}") for layer in range(61) for letter in "abcdefghijklmnopqrstuvwxy"
    ]
    shown = render(report(Verdict.FAIL, tensors=(*wired, tensor("rope_cos", Status.MISSING_WIRING))))
    assert part(shown, "Tensors by family and layer").startswith("\n```diff\n- rope_cos    0/1  X\n```\n")
    assert "<summary>25 families without a flaw (1,525 tensors, 61 layers)</summary>" in shown
    sound = render(report(tensors=tuple(wired)))
    assert part(sound, "Tensors by family and layer").startswith("\n<details>\n<summary>25 families")


def test_each_graph_has_its_own_map() -> None:
    both = (*decoder(2), *decoder(3, graph="other"))
    shown = render(report(graphs=(graph(), graph(name="other")), tensors=both))
    assert "layer_*_k_norm    2/2  ●●\n" in part(shown, "Tensors by family and layer of `gen`")
    assert "layer_*_k_norm    3/3  ●●●\n" in part(shown, "Tensors by family and layer of `other`")


def test_absurd_layer_numbers_neither_fail_nor_fill_the_page() -> None:
    tensors = [tensor(f"layer_{number}_w") for number in (0, 7, 10**30, "9" * 6_000)]
    far = [tensor(f"layer_{number}_v") for number in range(1_000, 1_200)]
    shown = render(report(tensors=(*tensors, *far)))
    assert "  layer_*_w      4/4  ●●········ " in shown
    assert re.search(r"layer_\*_v  200/200  [● ·]{140,150} \+74\n", shown)


def test_not_checked_is_listed_and_folded_where_long() -> None:
    few = tuple(NotChecked(rule="MK103", reason=f"TYPE_{number} is unknown") for number in range(3))
    listed = "\n- `MK103`: `TYPE_0` is unknown\n"
    assert part(render(report(not_checked=few)), "Not checked").startswith(listed)
    assert "<summary>12 checks that were not made</summary>" in render(report(not_checked=few * 4))


# --- budget ---------------------------------------------------------------------------------------


def size(markdown: str) -> int:
    return len(markdown.encode())


@settings(max_examples=60)
@given(reports, st.integers(summary.LEAST_BUDGET, 20_000))
def test_no_report_passes_the_budget_or_loses_its_verdict(any_report: Report, budget: int) -> None:
    whole, cut = summary.render(any_report), summary.render(any_report, budget=budget)
    assert size(whole) <= 1_000_000
    assert size(cut) <= budget
    assert cut.split("\n")[0] == whole.split("\n")[0]
    assert f"mkcov: {any_report.verdict.upper()} (exit {any_report.exit_code})" in cut.split("\n")[0]
    assert ("Left out to keep this summary" in cut) == (cut != whole)
    for output in (whole, cut):
        assert output.endswith("\n")
        characters = set(output) - {"\n", "\ufe0f"}
        assert not {each for each in characters if unicodedata.category(each)[0] == "C"}
        assert output.count("<details>") == output.count("</details>")


def test_two_thousand_findings_with_endless_names_stay_below_the_limit_and_say_what_was_cut() -> None:
    for letter in ("`", "\U0001f600"):
        names = [f"{index}{letter * 10_000}" for index in range(2_000)]
        found = tuple(finding(message=f"{name} is lost", tensor_name=name, fix=name) for name in names)
        tensors = tuple(tensor(name, Status.UNCONSUMED) for name in names)
        shown = render(report(Verdict.FAIL, findings=found, tensors=tensors))
        assert size(shown) < 1_048_576
        assert size(shown) > 900_000
        assert shown.startswith("## ❌ mkcov: FAIL (exit 1): 2,000 errors")
        assert re.search(r"\n… and [\d,]+ more findings\n", shown)
        assert re.search(r"\*\*Left out to keep this summary within its size limit:\*\* .*findings\.", shown)


def test_details_fall_before_what_is_read_first() -> None:
    found = tuple(finding(tensor_name=f"t{number}", consequence=f"effect {number}") for number in range(40))
    shown = report(Verdict.FAIL, findings=found, tensors=decoder(8))
    whole = render(shown)
    for budget in range(size(whole), summary.LEAST_BUDGET, -150):
        cut = summary.render(shown, budget=budget)
        assert size(cut) <= budget
        # Whatever is shown of a part, all parts of a higher rank are there in full.
        if "All 40 findings" in cut:
            assert "### Tensors by family" in cut
        if "### Tensors by family" in cut:
            assert "### Ranks" in cut
        assert "FAIL (exit 1)" in cut


def test_a_budget_without_room_for_a_verdict_is_refused() -> None:
    with pytest.raises(ValueError, match="at least"):
        summary.render(report(), budget=summary.LEAST_BUDGET - 1)


def test_a_verdict_whose_reasons_have_no_end_keeps_its_exit_code() -> None:
    endless = finding("*" * 1_000, "`" * 1_000)
    shown = summary.render(report(Verdict.FAIL, findings=(endless,) * 9), budget=summary.LEAST_BUDGET)
    assert shown.startswith("## ❌ mkcov: FAIL (exit 1)")
    assert size(shown) <= summary.LEAST_BUDGET


# --- rendered as GitHub does ----------------------------------------------------------------------


class Rendered(HTMLParser):
    """The elements of a page and its text: of code, and of all that GitHub's filters work on."""

    def __init__(self, markdown: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.codes: list[str] = []
        self.text = ""
        self.bare: list[str] = []
        self._code = 0
        self.feed(to_html(markdown))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {f"{tag}.{name}" for name, _ in attrs}
        if tag == "code":
            self._code += 1
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._code:
            self.codes[-1] += data
        else:
            self.bare.append(data)


# GitHub's filters on rendered text: mentions, issues, commits, addresses, emoji, formulas, custom links.
FILTERS = re.compile(
    r"@\w|#\d|\b[A-Za-z]+-\d|\b[0-9a-fA-F]{7,40}\b|https?:|www\.|\w@\w|:[\w+-]+:|\$|\b[A-Z]+\d", re.ASCII
)
FRAGMENTS = (
    *(
        "|",
        "`",
        "``",
        "```",
        "~~~",
        "<",
        ">",
        "&lt;",
        "&",
        "[x](y)",
        "![i](j)",
        "[^1]",
        "*",
        "**",
        "_",
        "__",
        "~~",
    ),
    *(
        "@octocat",
        "#1",
        "GH-7",
        "deadbeefcafe",
        "1234567",
        "https://x.example",
        "www.x.example",
        "a@b.example",
    ),
    *(
        ":tada:",
        "$x$",
        "$$",
        "<!--",
        "-->",
        "</details>",
        "<img src=x onerror=alert(1)>",
        "\\",
        "\\|",
        "1.",
        "2)",
    ),
    *(
        " ",
        "  ",
        "- ",
        "+ ",
        "# ",
        "## ",
        "=",
        "---",
        "\n",
        "\n\n",
        "\t",
        "    ",
        "| --- |",
        "```diff\n",
        "'",
        '"',
    ),
)
markdown_texts = st.one_of(
    texts,
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(st.characters(), max_size=3)), max_size=8).map(
        "".join
    ),
)


def assert_inert(rendered: Rendered, *elements: str) -> None:
    assert rendered.elements <= set(elements)
    for text in rendered.bare:
        assert not FILTERS.search(text), text


@settings(max_examples=300)
@given(markdown_texts, st.integers(1, 300))
@example("1. x", 100)
@example("a `` ` b", 100)
@example("  x  ", 100)
@example("` ` ", 100)
@example("(deadbeef), GH-1; 'x'", 100)
def test_a_sentence_shows_as_the_literal_text(raw: str, limit: int) -> None:
    for before, said in (("", ""), ("x: ", "x: "), ("- ", ""), ("## ", "")):
        rendered = Rendered(before + prose(raw, limit))
        assert rendered.text.strip("\n") == (said + clean(raw, limit) if raw else said.strip())
        assert_inert(rendered, "p", "code", "ul", "li", "h2")


@settings(max_examples=300)
@given(markdown_texts)
def test_a_name_shows_as_the_literal_text_even_in_a_table(raw: str) -> None:
    expected = clean(raw, NAME_LIMIT) or '""'
    shown = table(("a", "b"), "lr") + row((code(raw), f"x {prose(raw, 80)}"))
    rendered = Rendered(shown)
    assert rendered.codes[0] == expected
    assert rendered.text.split() == f"a b {expected} x {clean(raw, 80)}".split()
    assert_inert(rendered, "table", "thead", "tbody", "tr", "th", "td", "code")
    assert Rendered(f"**{code(raw)}** – {code(raw)}<br>\n{code(raw)}").codes == [expected] * 3


@settings(max_examples=150)
@given(st.lists(markdown_texts, min_size=1, max_size=4))
def test_a_block_shows_its_lines_as_the_literal_text(raw: list[str]) -> None:
    lines = [f"- {clean(each)}\n" for each in raw]
    fence = fence_for(lines)
    rendered = Rendered(f"{fence}diff\n{''.join(lines)}{fence}\n\nend\n")
    assert rendered.codes == ["".join(lines)]
    assert_inert(rendered, "pre", "code", "p")


@settings(max_examples=200)
@given(markdown_texts, markdown_texts, markdown_texts)
def test_a_sentence_shows_the_name_in_it_as_one_piece_of_code(before: str, name: str, after: str) -> None:
    rendered = Rendered(prose(f"{before} {name} {after}", name=name))
    assert rendered.text.strip("\n") == clean(f"{before} {name} {after}")
    assert_inert(rendered, "p", "code")
    shown = clean(name)
    if {"x", "y"} & {*shown.split(" ")}:
        return  # two names in a row are one piece of code
    if name.strip(" ") and clean(f"x {name} y") == f"x {shown} y" and len(name) < MESSAGE_LIMIT - 4:
        assert shown in Rendered(prose(f"x {name} y", name=name)).codes


PAGE = ("h2", "h3", "p", "br", "strong", "ul", "li", "pre", "code", "details", "summary")
TABLE = ("table", "thead", "tbody", "tr", "th", "td")


@settings(max_examples=60)
@given(reports)
def test_no_report_puts_an_element_of_its_own_on_the_page(any_report: Report) -> None:
    rendered = Rendered(summary.render(any_report))
    assert_inert(rendered, *PAGE, *TABLE)
    assert rendered.attributes <= {"pre.lang", "th.align", "td.align"}


def hostile_report() -> Report:
    names = [*FRAGMENTS, "".join(FRAGMENTS), "a" * 10_000, "\u202ebidi\u2066", "##[error]x", "張量"]
    found = [
        finding(
            name,
            name,
            message=f"{name} is lost",
            tensor_name=name,
            consequence=name,
            fix=name,
            members=(name,),
        )
        for name in names
    ]
    return report(
        Verdict.FAIL,
        graphs=(graph(rank(), name="`<b>|"), graph(rank(audited=False), name="b")),
        findings=tuple(found),
        tensors=tuple(tensor(name, Status.UNCONSUMED, graph="`<b>|") for name in names),
        not_checked=tuple(NotChecked(rule=name, reason=name, graph=name) for name in names),
        failures=tuple(Failure(message=name, graph=name) for name in names),
        warnings=tuple(names),
    )


def test_hostile_names_show_as_they_are_wherever_they_stand() -> None:
    shown = hostile_report()
    rendered = Rendered(render(shown))
    assert_inert(rendered, *PAGE, *TABLE)
    for each in shown.findings:
        assert each.tensor
        assert (clean(each.tensor, NAME_LIMIT) or '""') in rendered.codes
        assert clean(each.tensor, 48) in rendered.text


@pytest.mark.skipif(browser() is None, reason="no Chromium is installed")
@pytest.mark.parametrize("directory", ["fixtures/demo/unwired", "fixtures/glm/after", None])
def test_a_browser_shows_the_summary(directory: str | None, repository: Path, tmp_path: Path) -> None:
    shown = (
        audit(Config(paths=(str(repository / directory),), root=repository))
        if directory
        else hostile_report()
    )
    html, png = tmp_path / "page.html", tmp_path / "page.png"
    html.write_text(page(to_html(render(shown))), encoding="utf-8")
    screenshot(html, png, height=600)
    assert png.read_bytes().startswith(b"\x89PNG")
    assert png.stat().st_size > 10_000
