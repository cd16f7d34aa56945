"""`mkcov schema`: prints the JSON schema of the task graph or of what mkcov itself writes."""

from __future__ import annotations

import json
import sys

import click

from mkcov_action.commands._output import write
from mkcov_action.schema import load


@click.command(short_help="Print the JSON schema of the task graph.")
@click.option(
    "--report", "name", flag_value="report", help="Print the schema of mkcov's own JSON report instead."
)
@click.option(
    "--show", "name", flag_value="show", help="Print the schema of what `mkcov show --json` prints instead."
)
def schema(*, name: str | None) -> None:
    """Print the JSON schema (draft 2020-12) of task_graph_<rank>.json.

    It is the contract that `mkcov check` holds task graphs to.
    """
    document = load(name or "task_graph")
    write(sys.stdout, json.dumps(document, indent=2) + "\n")
