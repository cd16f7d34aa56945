"""`mkcov schema`: prints the JSON schema of the task graph or of mkcov's own report."""

from __future__ import annotations

import json
import sys

import click

from mkcov_action.commands._output import write
from mkcov_action.schema import load


@click.command(short_help="Print the JSON schema of the task graph.")
@click.option("--report", is_flag=True, help="Print the schema of mkcov's own JSON report instead.")
def schema(*, report: bool) -> None:
    """Print the JSON schema (draft 2020-12) of task_graph_<rank>.json.

    It is the contract that `mkcov check` holds task graphs to.
    """
    document = load("report" if report else "task_graph")
    write(sys.stdout, json.dumps(document, indent=2) + "\n")
