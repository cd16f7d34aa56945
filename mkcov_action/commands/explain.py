"""`mkcov explain`: a rule's page in the terminal."""

from __future__ import annotations

import io
import shutil
import sys

import click

from mkcov_action.commands._options import unknown_rule
from mkcov_action.commands._output import wants_color, write
from mkcov_action.rules import RULES, Rule

_NARROWEST, _WIDEST = 40, 100  # columns


@click.command(short_help="Show a rule's page.")
@click.argument("rule", metavar="RULE")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Render the page; auto: on a terminal, unless NO_COLOR is set.",
)
def explain(*, rule: str, color: str) -> None:
    """Show what RULE (an id such as MK101, or a name) finds, why it matters and how to fix it."""
    found = next((item for item in RULES if rule.lower() in (item.id.lower(), item.name)), None)
    if found is None:
        raise click.BadParameter(unknown_rule(rule), param_hint="RULE")
    page = f"# {found.id} {found.name}\n\n{_facts(found)}\n\n{found.doc}\n"
    write(sys.stdout, _rendered(page) if wants_color(sys.stdout, color) else page)


def _facts(rule: Rule) -> str:
    locked = " Cannot be switched off." if rule.locked else ""
    return f"Severity {rule.severity.label}, stage {rule.stage}, since {rule.since}.{locked}"


def _rendered(page: str) -> str:
    from rich.console import Console  # noqa: PLC0415 - slow to import, and needed on terminals only
    from rich.markdown import Markdown  # noqa: PLC0415

    console = Console(file=io.StringIO(), force_terminal=True, width=_width())
    with console.capture() as capture:
        console.print(Markdown(page))
    return capture.get()


def _width() -> int:
    """The terminal's, as far as prose of that width can be read."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))
