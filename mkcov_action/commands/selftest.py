"""`mkcov selftest`: shows that the gate catches faults that are planted into the user's own artifacts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from mkcov_action.artifacts import DECOMPRESSION_ERRORS, discover, reason_of
from mkcov_action.audit import audit
from mkcov_action.commands._output import ProgressLine, write
from mkcov_action.config import Config
from mkcov_action.finding import Severity
from mkcov_action.github import workspace
from mkcov_action.reporters.clean import clean, name
from mkcov_action.reporters.wording import count
from mkcov_action.selftest import Texts, Trial, texts_of, trials

_MESSAGE = 200  # characters of a finding


@click.command(
    short_help="Show that the gate can fail.",
    epilog="Exit codes: 0 every planted fault was caught; 1 one was not; 2 wrong usage, or artifacts into which"
    " nothing can be planted; 3 an internal error.",
)
@click.argument("directory", default=".", metavar="[DIRECTORY]")
@click.option("--seed", default=0, metavar="N", help="Choose other places for the faults.")
@click.option(
    "--task-types",
    metavar="HEADER",
    type=click.Path(path_type=Path),
    help="Read the names of task types from this runtime_header.h.",
)
@click.option(
    "--all", "everything", is_flag=True, help="List the kinds for which the graph has no place, too."
)
def selftest(*, directory: str, seed: int, task_types: Path | None, everything: bool) -> None:
    """Plant one fault of each kind into a copy of DIRECTORY's artifacts, and show what mkcov says of it.

    A gate that is always green may have nothing to find, or may not look. The artifacts themselves
    are not touched. Takes about as long as forty audits.
    """
    config = Config(paths=(directory,), root=workspace() or Path.cwd(), task_types=task_types)
    texts = _texts(config)
    before = audit(config)
    if before.exit_code > 1 or any(not rank.audited for graph in before.graphs for rank in graph.ranks):
        raise click.ClickException(
            f"the artifacts cannot be audited as they are: mkcov check {name(directory)}"
        )
    counts = ", ".join(count(number, label) for label, number in before.counts().items() if number)
    write(
        sys.stdout, f"{name(directory)}: {count(len(texts), 'rank')}; before: {counts or 'no findings'}\n\n"
    )
    progress = ProgressLine(noun="kinds of faults")
    found: list[Trial] = []
    try:
        for trial in _watched(trials(texts, config, seed=seed), progress):
            found.append(trial)
            if trial.planted is not None or everything:
                progress.clear()
                write(sys.stdout, _line(trial))
    finally:
        progress.clear()
    planted = [trial for trial in found if trial.planted is not None]
    if not planted:
        raise click.ClickException("nothing could be planted: the graph has no place for any kind of fault")
    write(sys.stdout, f"\n{_verdict(found, planted)}\n")
    sys.exit(int(not all(trial.caught or trial.unchecked for trial in planted)))


def _texts(config: Config) -> list[Texts]:
    discovery = discover(config)
    if discovery.failures:
        raise click.ClickException(clean(discovery.failures[0].message))
    (graph,) = discovery.graphs
    try:
        texts = texts_of(graph)
    except (*DECOMPRESSION_ERRORS, ValueError, LookupError, TypeError) as error:
        reason = (
            "not a task graph" if isinstance(error, json.JSONDecodeError | LookupError) else reason_of(error)
        )
        raise click.ClickException(f"{name(graph.graph)}: {clean(reason)}") from error
    if not texts:
        raise click.ClickException(f"{name(graph.graph)}: no rank with both of its files here")
    return texts


def _watched(found: Iterator[Trial], progress: ProgressLine) -> Iterator[Trial]:
    for done, trial in enumerate(found, start=1):
        yield trial
        progress(done, _kinds())


def _kinds() -> int:
    from mkcov_action.faults import FAULTS  # noqa: PLC0415 - a figure for the progress line

    return len(FAULTS)


def _line(trial: Trial) -> str:
    if trial.planted is None:
        return f"no place          {trial.fault.what}\n"
    if not trial.caught and trial.unchecked:
        skipped = trial.unchecked[0]
        return (
            f"not sure          {trial.fault.what}\n"
            f"                  {name(skipped.rule)} not checked: {clean(skipped.reason, _MESSAGE)}\n"
        )
    if not trial.caught:
        said = ", ".join(sorted({finding.rule for finding in trial.seen})) or "nothing"
        missing = ", ".join(sorted(trial.fault.named_by))
        return f"MISSED            {trial.fault.what} ({clean(trial.planted, _MESSAGE)}): {missing} expected, {said} said\n"
    severity = trial.severity.label if trial.severity else ""
    finding = trial.named[0]
    return (
        f"caught   {severity:<8} {trial.fault.what}\n"
        f"                  {name(finding.rule)} {clean(finding.message, _MESSAGE)}\n"
    )


def _verdict(found: Sequence[Trial], planted: Sequence[Trial]) -> str:
    caught = [trial for trial in planted if trial.caught]
    mild = sum(trial.severity is not Severity.ERROR for trial in caught)
    parts = [f"SELFTEST: {len(caught):,} of {count(len(planted), 'planted fault')} caught"]
    if mild:
        parts.append(f"{mild:,} of them as warnings, which fail the gate with --fail-on warning")
    if unsure := sum(not trial.caught and bool(trial.unchecked) for trial in planted):
        parts.append(f"{unsure:,} not checked, as was said, because of what else is wrong")
    if without := len(found) - len(planted):
        parts.append(f"{count(without, 'kind')} without a place in this graph")
    return "; ".join(parts)
