from __future__ import annotations

import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mkcov_action.report import CriticalName, Report, Verdict
from mkcov_action.reporters import json_report, text
from mkcov_action.reporters.clean import MESSAGE_LIMIT, NAME_LIMIT, clean, name
from tests.reports import finding, graph, report, reports, tensor, texts

BIDI = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")
ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|[\\nrt])")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def unescape(shown: str) -> str:
    return ESCAPE.sub(lambda match: match.group().encode("ascii").decode("unicode_escape"), shown)


def assert_harmless(output: str) -> None:
    """Nothing in the output moves, hides or reorders text, nor speaks to a runner."""
    allowed_blanks = {" ", "\n"}
    for character in set(output) - allowed_blanks:
        assert unicodedata.category(character)[0] not in "CZ", f"raw {character!r}"
    assert not BIDI & set(output)
    assert "##[" not in output
    for line in output.split("\n"):
        assert not line.lstrip().startswith("::"), line
    output.encode("utf-8")


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\nb\rc\td", r"a\nb\rc\td"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x00\x7f\x85\x9b", r"\x00\x7f\x85\x9b"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\u202eabc\u2066\u200e\u200f\u061c", r"\u202eabc\u2066\u200e\u200f\u061c"),
        ("\u200b\ufeff\u00ad\u3164\u034f", r"\u200b\ufeff\xad\u3164\u034f"),
        ("\ud800", r"\ud800"),
        ("\ue000\uffff\U000e0041", r"\ue000\uffff\U000e0041"),
        ("\u00a0\u3000", r"\xa0\u3000"),
        ("a\\nb", r"a\\nb"),
        ("##[error]x", r"##\x5berror]x"),
        ("###[a##[b", r"###\x5ba##\x5bb"),
        ("::error::x", r"\x3a:error::x"),
        ("  ::error::x", r"  \x3a:error::x"),
        ("std::vector", "std::vector"),
        ("größe 張量", "größe 張量"),
    ],
)
def test_what_is_not_plainly_visible_becomes_an_escape(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_only_a_plain_name_stands_without_quotes() -> None:
    assert name("model.layers.0/q_proj-1") == "model.layers.0/q_proj-1"
    assert name("layer_*_kv_cache") == "layer_*_kv_cache"
    assert name("") == '""'
    assert name("rope_cos: input_refs=156") == '"rope_cos: input_refs=156"'
    assert name('say "x"') == r'"say \"x\""'


def test_a_long_text_is_cut_and_its_length_said() -> None:
    assert name("a" * 10_000) == f'"{"a" * NAME_LIMIT}"... (10,000 characters)'
    assert clean("b" * (MESSAGE_LIMIT + 1)) == "b" * MESSAGE_LIMIT + f"... ({MESSAGE_LIMIT + 1:,} characters)"
    assert clean("b" * MESSAGE_LIMIT) == "b" * MESSAGE_LIMIT


def test_escapes_count_towards_the_limit_and_are_never_cut_in_two() -> None:
    assert clean("\x1b" * 10, 7) == r"\x1b... (10 characters)"
    assert clean("##[", 5) == "##... (3 characters)"


@given(texts)
@example("\\x1b")
@example("\\\x1b")
def test_an_escaped_text_tells_exactly_what_it_was(raw: str) -> None:
    assert unescape(clean(raw, limit=10**6)) == raw


@given(texts, texts)
def test_two_names_never_look_the_same(one: str, other: str) -> None:
    assert (name(one, 10**6) == name(other, 10**6)) == (one == other)


@given(texts, st.integers(0, 200))
def test_every_cleaned_text_is_harmless_even_alone_on_its_line(raw: str, limit: int) -> None:
    assert_harmless(clean(raw, limit))
    assert_harmless(name(raw, limit))


@given(reports, st.booleans())
def test_no_text_of_the_artifacts_gets_out_of_the_text_report(any_report: Report, all_tensors: bool) -> None:
    assert_harmless(text.render(any_report, all_tensors=all_tensors))


@given(reports, st.booleans())
def test_colour_adds_codes_and_changes_no_character(any_report: Report, all_tensors: bool) -> None:
    coloured = text.render(any_report, all_tensors=all_tensors, color=True)
    assert SGR.sub("", coloured) == text.render(any_report, all_tensors=all_tensors)


@given(reports)
def test_no_text_of_the_artifacts_gets_out_of_the_json_report(any_report: Report) -> None:
    output = json_report.render(any_report)
    assert output.isascii()
    assert_harmless(output)


@given(reports)
def test_the_number_of_lines_does_not_depend_on_what_names_contain(any_report: Report) -> None:
    lines = text.render(any_report).split("\n")
    assert lines[-2].startswith("VERDICT: ")
    assert not lines[-1]
    assert sum(line.startswith("VERDICT: ") for line in lines) == 1


@pytest.mark.parametrize(
    "hostile",
    ["::error::x", "\n::error::x", "x##", "\r::stop-commands::t", "\x1b]0;title\x07", "\u202ecos", "[bold]"],
)
def test_a_hostile_name_is_harmless_wherever_it_stands(hostile: str) -> None:
    shown = report(
        Verdict.FAIL,
        graphs=(graph(name=hostile), graph(name="b")),
        tensors=(
            tensor(hostile, graph=hostile, critical=True, refs=(1, 0), consumers=((1, hostile),)),
            tensor(hostile, graph="b"),
        ),
        not_declared=(CriticalName(graph="b", name=hostile),),
        findings=(
            finding(hostile, hostile, message=hostile, graph=hostile, location=None, consequence=hostile),
            finding(members=(hostile,), fix=hostile),
        ),
        warnings=(hostile,),
    )
    assert_harmless(text.render(shown))
    assert_harmless(text.render(shown, all_tensors=True))
    assert json.loads(json_report.render(shown))["warnings"] == [hostile]
