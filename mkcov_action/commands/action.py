"""The GitHub Action: `mkcov` without arguments in a workflow.

Settings come from INPUT_*; results go to the log, to files in the checkout, to the job summary and
to the step's outputs; the exit code is the gate. Whatever goes wrong takes the same way as a
verdict: it becomes a failure of the report, so that log, summary and outputs all tell of it.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import click

from mkcov_action import github
from mkcov_action.artifacts import reason_of
from mkcov_action.audit import audit
from mkcov_action.commands._output import write
from mkcov_action.commands._settings import Settings, settings_of, short
from mkcov_action.commands._workspace import Workspace
from mkcov_action.config import Config
from mkcov_action.finding import Failure, describe
from mkcov_action.report import Report, build_report
from mkcov_action.reporters import annotations as annotations_report
from mkcov_action.reporters import json_report, summary, text
from mkcov_action.reporters.clean import clean, name


@click.command(hidden=True)
def action() -> None:
    """Run as the GitHub Action does: read INPUT_*, write reports, job summary and outputs.

    This is what mkcov does without arguments in a workflow.
    """
    given = github.workspace() or Path.cwd()
    workspace = Workspace(Path(os.path.realpath(given)))
    failures: list[Failure] = []
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(contextlib.chdir(workspace.root))
        except OSError as error:
            failures.append(Failure(message=f"the workspace {given}: {reason_of(error)}"))
        settings = settings_of(workspace, failures)
        sys.exit(_Publication(_audited(settings.config, failures), settings, workspace).publish())


def _audited(config: Config, failures: list[Failure]) -> Report:
    """The audit's report; without an audit, one that says why there is none."""
    if not failures:
        try:
            return audit(config)
        except Exception as error:  # noqa: BLE001 - a bug of ours: exit 3, told where people look
            failures.append(Failure(message=describe(error), internal=True))
    return build_report(config, (), failures)


@dataclass(slots=True)
class _Publication:
    """A report on its way out: a form of it that fails is a failure that the next forms report."""

    report: Report
    settings: Settings
    workspace: Workspace
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    truncated: bool = False

    def publish(self) -> int:
        """Writes all that was asked for, whatever becomes of any of it; returns the exit code.

        The log comes after the reports, so that its last line is the verdict; the outputs come
        last, and know all.
        """
        self._try("SARIF", self._sarif)
        self._try("JSON", self._json)
        self._try("the job summary", self._summary)
        told = len(self.report.failures)
        self._try("the log", self._log)
        self._try("the outputs", self._outputs)
        for failure in self.report.failures[told:]:
            title = "INTERNAL ERROR" if failure.internal else "ERROR"
            write(sys.stdout, f"{title}: {clean(failure.message)}\n")
        return self.report.exit_code

    def _try(self, what: str, form: Callable[[], None]) -> None:
        try:
            form()
        except Exception as error:  # noqa: BLE001 - a bug of ours: exit 3, and the other forms are written
            self._fail(f"{what}: {describe(error)}", internal=True)

    def _fail(self, message: str, *, internal: bool = False) -> None:
        self.report = self.report.with_failure(Failure(message=message, internal=internal))

    def _sarif(self) -> None:
        if self.settings.sarif is None:
            return
        if not self.report.replaces_alerts:
            self.notes.append("no SARIF: it would close the alerts of what was not audited")
            return
        # Imported here, since sarif-om is slow to import.
        from mkcov_action.reporters import sarif  # noqa: PLC0415

        self._file("sarif-file", self.settings.sarif, sarif.render(self.report))
        if (found := len(self.report.findings)) > sarif.MOST_RESULTS:
            self.truncated = True
            cut = f"SARIF holds the {sarif.MOST_RESULTS:,} worst of {found:,} findings; the gate counts all"
            self.report = replace(self.report, warnings=(*self.report.warnings, cut))

    def _json(self) -> None:
        if self.settings.json is not None:
            self._file("json-file", self.settings.json, json_report.render(self.report))

    def _file(self, output: str, path: Path, content: str) -> None:
        file = self.workspace.name(path)
        if reason := self.workspace.write(path, content):
            self._fail(f"cannot write {short(file)}: {reason}")
        else:
            self.files[output] = file
            self.notes.append(f"wrote {name(file)}")

    def _summary(self) -> None:
        room = github.summary_room()
        if not self.settings.summary or room is None:
            return
        if room < summary.LEAST_BUDGET:
            self.truncated = True
            self.notes.append("no job summary: what this step wrote before leaves no room for it")
            return
        page = summary.fitted(self.report, budget=room)
        self.truncated |= page.left_out > 0
        if reason := github.append_summary(page.text):
            self._fail(f"cannot write the job summary: {reason}")

    def _log(self) -> None:
        if self.settings.annotations:
            write(sys.stdout, github.group("mkcov: annotations", annotations_report.render(self.report)))
            self.truncated |= annotations_report.is_cut(self.report)
        notes = "".join(f"mkcov: {note}\n" for note in self.notes)
        write(sys.stdout, notes + text.render(self.report))

    def _outputs(self) -> None:
        counts = self.report.counts()
        outputs = {
            "verdict": self.report.verdict.value,
            "exit-code": str(self.report.exit_code),
            "errors": str(counts["error"]),
            "warnings": str(counts["warning"]),
            "sarif-file": self.files.get("sarif-file", ""),
            "json-file": self.files.get("json-file", ""),
            "coverage": _coverage(self.report),
            "truncated": str(self.truncated).lower(),
        }
        if reason := github.write_outputs(outputs):
            self._fail(f"cannot write the step's outputs: {reason}")


def _coverage(report: Report) -> str:
    """Percent of model and shuffled tensors that a used slot touches, over all audited ranks.

    With one digit and never rounded up, so that 100.0 means all; empty where there are none.
    """
    figures = [rank.coverage for graph in report.graphs for rank in graph.ranks]
    total = sum(coverage.model_tensors for coverage in figures)
    touched = sum(coverage.model_tensors_consumed for coverage in figures)
    return f"{1000 * touched // total / 10:.1f}" if total else ""
