"""`mkcov rules`: lists the catalogue."""

from __future__ import annotations

import json
import sys

import click

from mkcov_action.commands._output import write
from mkcov_action.rules import RULES, Rule


@click.command(short_help="List the rules.")
@click.option("--json", "as_json", is_flag=True, help="List them as JSON.")
def rules(*, as_json: bool) -> None:
    """List every rule: id, severity, name and what it finds.

    `mkcov explain RULE` shows a rule's page.
    """
    if as_json:
        write(sys.stdout, json.dumps([_record(rule) for rule in RULES], indent=2) + "\n")
        return
    width = max(len(rule.name) for rule in RULES)
    for rule in RULES:
        write(sys.stdout, f"{rule.id}  {rule.severity.label:<7}  {rule.name:<{width}}  {rule.summary}\n")


def _record(rule: Rule) -> dict[str, object]:
    return {
        "id": rule.id,
        "name": rule.name,
        "severity": rule.severity.label,
        "stage": rule.stage.value,
        "since": rule.since,
        "can_be_switched_off": not rule.locked,
        "summary": rule.summary,
        "page": rule.doc,
    }
