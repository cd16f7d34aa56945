"""The GitHub Action: `mkcov` without arguments in a workflow.

Settings come from INPUT_*, results go to the log, to files in the checkout, to the job summary and
to the step's outputs, and the exit code is the gate. Whatever goes wrong takes the same way as a
verdict: it becomes a failure of the report, so that the log, the summary and the outputs tell of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import click

from mkcov_action import github
from mkcov_action.artifacts import reason_of
from mkcov_action.audit import audit
from mkcov_action.commands import _options as options
from mkcov_action.commands._output import write
from mkcov_action.commands._workspace import Workspace
from mkcov_action.config import Config
from mkcov_action.finding import Failure, Severity
from mkcov_action.loader import describe
from mkcov_action.report import Report, Verdict, build_report
from mkcov_action.reporters import annotations, json_report, summary, text
from mkcov_action.reporters.clean import clean

DEFAULT_SARIF = "mkcov.sarif"

_NO_VERDICT = 2
_INTERNAL = 3
_LONGEST_PATH = 4_096  # bytes, on Linux
_SHOWN = 120


@click.command(hidden=True)
def action() -> None:
    """Run as the GitHub Action does: read INPUT_*, write the reports, outputs and job summary.

    This is what mkcov does without arguments in a workflow.
    """
    root = github.workspace() or Path.cwd()
    workspace = Workspace(Path(os.path.realpath(root)))
    failures: list[Failure] = []
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(contextlib.chdir(workspace.root))
        except OSError as error:
            failures.append(Failure(message=f"the workspace {root}: {reason_of(error)}"))
        settings = _settings(workspace, failures)
        sys.exit(_publish(_audited(settings.config, failures), settings, workspace))


# --- settings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What to audit, and which reports to write; a file is None where it is not wanted."""

    config: Config
    sarif: Path | None
    json: Path | None
    summary: bool
    annotations: bool


def _settings(workspace: Workspace, failures: list[Failure]) -> _Settings:
    """The settings that the inputs ask for; what makes no sense joins `failures`, all of it at once."""
    inputs, problems = github.read_inputs()
    failures += (Failure(message=problem) for problem in problems)
    sarif_file = inputs.sarif_file or DEFAULT_SARIF
    with _input("sarif-file", failures, sarif_file) as sarif:
        sarif.value = workspace.locate(sarif_file)
    ...
