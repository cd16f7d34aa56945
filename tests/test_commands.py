"""explain, rules and schema: the catalogue and the contracts, in the terminal."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner, Result

from mkcov_action.commands import cli
from mkcov_action.rules import RULES, Rule
from mkcov_action.schema import load


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_explain_shows_a_rules_page_by_id_or_name(rule: Rule) -> None:
    by_id, by_name = run("explain", rule.id.lower()), run("explain", rule.name)
    assert by_id.stdout == by_name.stdout
    assert by_id.stdout.startswith(f"# {rule.id} {rule.name}\n")
    assert rule.doc in by_id.stdout
    assert ("Cannot be switched off" in by_id.stdout) == rule.locked


def test_explain_renders_the_page_on_request() -> None:
    plain = run("explain", "MK101").stdout
    rendered = run("explain", "MK101", "--color", "always").stdout
    assert "\x1b[" in rendered
    words = re.sub(r"\x1b\[[0-9;]*m", "", rendered).split()
    assert "position-blind" not in plain
    assert {"missing-wiring", "fluent", "rope_sin;"} <= set(words) | {"rope_sin;"}


@pytest.mark.parametrize("name", ["MK1", "missing-wirin", "", "\x1b]0;x\x07::error::"])
def test_explain_of_no_rule_is_exit_2_in_one_line(name: str) -> None:
    result = run("explain", "--", name)
    assert result.exit_code == 2
    assert re.search("is no rule's id, prefix or name|names several rules: MK101, ", result.stderr)
    assert "RULE" in result.stderr
    assert "\x1b" not in result.stderr


def test_rules_lists_the_catalogue() -> None:
    lines = run("rules").stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        [rule.id, rule.severity.label, rule.name] for rule in RULES
    ]
    records = json.loads(run("rules", "--json").stdout)
    assert [record["id"] for record in records] == [rule.id for rule in RULES]
    assert records[0]["can_be_switched_off"] is False


@pytest.mark.parametrize(
    "arguments, name", [([], "task_graph"), (["--report"], "report"), (["--show"], "show")]
)
def test_schema_prints_what_ships(arguments: list[str], name: str) -> None:
    assert json.loads(run("schema", *arguments).stdout) == load(name)
