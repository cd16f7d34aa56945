"""The catalogue's form: every rule has its module, its page, its fixtures; each failure names the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mkcov_action import rules
from mkcov_action.rules import RULES, Rule, Stage

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(rules.__file__).parent
SECTIONS = ["What it finds", "Why it matters", "Example", "How to fix it"]

each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


def module_of(rule: Rule) -> Path:
    return PACKAGE / f"{rule.name.replace('-', '_')}.py"


def test_ids_and_names_are_unique_and_rise() -> None:
    ids = [rule.id for rule in RULES]
    assert ids == sorted(set(ids))
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_every_module_is_a_registered_rule() -> None:
    modules = {path for path in PACKAGE.glob("*.py") if not path.name.startswith("_")}
    assert modules == {module_of(rule) for rule in RULES}


def test_stages_follow_the_hundreds_of_the_ids() -> None:
    assert [rule.stage for rule in RULES] == [list(Stage)[int(rule.id[2])] for rule in RULES]


@each_rule
def test_a_rule_has_a_well_formed_identity(rule: Rule) -> None:
    assert re.fullmatch(r"MK[0-9]{3}", rule.id)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.name)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert module_of(rule).exists(), f"{module_of(rule)} is missing"


@each_rule
def test_a_rules_docstring_is_a_page(rule: Rule) -> None:
    summary, *rest = rule.doc.split("\n\n")
    assert summary.endswith("."), f"{module_of(rule)}: the first paragraph is a sentence"
    assert "\n" not in summary, f"{module_of(rule)}: the first paragraph is one line"
    assert re.findall(r"^## (.+)$", rule.doc, re.MULTILINE) == SECTIONS, f"{module_of(rule)}: {SECTIONS}"
    assert all(len(part.strip()) > 20 for part in rest)


@each_rule
@pytest.mark.parametrize("kind", ["ok", "bad"])
def test_a_rule_has_fixtures_of_both_kinds(rule: Rule, kind: str) -> None:
    directory = ROOT / "fixtures" / "rules" / rule.name / kind
    cases = list(directory.glob("*/"))
    assert cases, f"{directory} has no case"
    for case in cases:
        assert kind == "ok" or (case / "expected.json").exists(), f"{case}/expected.json: run make golden"


def test_no_fixture_belongs_to_no_rule() -> None:
    assert {path.name for path in (ROOT / "fixtures" / "rules").iterdir()} == {rule.name for rule in RULES}


@each_rule
def test_a_rule_has_its_documentation_page(rule: Rule) -> None:
    page = ROOT / "docs" / "rules" / f"{rule.id}-{rule.name}.md"
    assert page.exists(), f"{page}: run make docs"
