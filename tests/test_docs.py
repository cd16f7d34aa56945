"""The documentation generator: pages follow the code, and what is stale is named."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from mkcov_action.finding import Severity
from mkcov_action.rules import RULES
from mkcov_action.rules._rule import Rule, Stage
from tools import docs


def a_rule(doc: str = "A tensor nobody reads.\nReally.\n\n## Why it matters\n\nIt does.") -> Rule:
    return Rule(
        id="MK900",
        name="lost-tensor",
        severity=Severity.WARNING,
        stage=Stage.WIRING,
        since="0.1.0",
        check=lambda _: iter(()),
        doc=doc,
    )


def a_group() -> click.Group:
    @click.group()
    def cli() -> None:
        """Audit things."""

    @cli.command()
    @click.option("--fail-on", metavar="A|B", help="Where to   stop.")
    @click.option("--secret", hidden=True)
    @click.argument("path")
    def check(fail_on: str, secret: str, path: str) -> None:
        """Audit one thing."""

    @cli.command(hidden=True)
    def internal() -> None:
        """Not for users."""

    return cli


def test_a_rule_page_holds_its_figures_and_its_docstring(tmp_path: Path) -> None:
    page = docs.rule_page(a_rule(), tmp_path)
    assert "# MK900: lost-tensor\n" in page
    assert "Severity **warning** · stage wiring · since 0.1.0" in page
    assert page.endswith("## Why it matters\n\nIt does.\n")


def test_the_index_links_each_page_and_keeps_its_table_whole() -> None:
    index = docs.rules_index([a_rule("Finds a | b\nand c.\n\nMore.")])
    assert (
        "| [MK900](MK900-lost-tensor.md) | lost-tensor | warning | wiring | Finds a \\| b and c. |\n" in index
    )


def test_the_cli_page_shows_the_help_of_every_visible_command() -> None:
    page = docs.cli_page(a_group())
    assert "## mkcov\n" in page
    assert "## mkcov check\n" in page
    assert "Usage: mkcov check [OPTIONS] PATH" in page
    assert "internal" not in page


def test_the_cli_page_does_not_depend_on_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = docs.cli_page(a_group())
    monkeypatch.setenv("COLUMNS", "40")
    assert docs.cli_page(a_group()) == wide


def test_the_options_table_lists_what_help_lists() -> None:
    table = docs.options_table(a_group().commands["check"], "mkcov check")
    assert "| `--fail-on A\\|B` | Where to stop. |" in table
    assert "| `--help` |" in table
    assert "secret" not in table


def test_a_block_is_replaced_and_the_rest_kept() -> None:
    text = "before\n<!-- demo:begin -->\nold\n<!-- demo:end -->\nafter\n"
    changed = docs.replace_block(text, "demo", "new \\1\n")
    assert changed == "before\n<!-- demo:begin -->\nnew \\1\n<!-- demo:end -->\nafter\n"
    assert docs.replace_block(changed, "demo", "new \\1\n") == changed


@pytest.mark.parametrize("text", ["", "<!-- demo:begin -->", "<!-- demo:end -->" * 2 + "<!-- demo:begin -->"])
def test_a_missing_mark_is_an_error_and_not_silence(text: str) -> None:
    with pytest.raises(SystemExit, match="expected exactly one"):
        docs.replace_block(text, "demo", "new")


def test_stale_files_are_the_changed_the_missing_and_the_orphaned(tmp_path: Path) -> None:
    rules = tmp_path / "docs" / "rules"
    rules.mkdir(parents=True)
    same, changed, missing, orphan = (
        rules / f"{name}.md" for name in ("same", "changed", "missing", "orphan")
    )
    for path in (same, changed, orphan):
        path.write_text("text", encoding="utf-8")
    wanted = {same: "text", changed: "other", missing: "text"}
    assert dict(docs.stale_files(tmp_path, wanted)) == {changed: "other", missing: "text", orphan: None}
    for path, text in docs.stale_files(tmp_path, wanted):
        docs.write(path, text)
    assert not list(docs.stale_files(tmp_path, wanted))


def test_a_rule_page_shows_what_a_fixture_yields(repository: Path) -> None:
    page = docs.rule_page(next(rule for rule in RULES if rule.id == "MK112"), repository)
    assert "$ mkcov check fixtures/rules/incomplete-shuffle/bad/one-copy-missing\n" in page
    assert "leave a hole at byte 768" in page
    assert "VERDICT" not in page
