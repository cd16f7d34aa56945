"""`mkcov check`: audits generated directories and gates on what it finds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import click

from mkcov_action.audit import Timings, audit
from mkcov_action.commands import _options as options
from mkcov_action.commands._output import ProgressLine, wants_color, write, write_file
from mkcov_action.config import Config
from mkcov_action.finding import Failure
from mkcov_action.github import workspace
from mkcov_action.report import Report
from mkcov_action.reporters import annotations as annotations_report
from mkcov_action.reporters import json_report, summary, text
from mkcov_action.reporters.clean import clean


@click.command(
    short_help="Audit generated directories.",
    epilog="Exit codes: 0 no finding at or above --fail-on; 1 there is one; 2 wrong usage, a path outside its"
    " directory, or nothing that could be audited; 3 an internal error.",
)
@click.argument("paths", nargs=-1, metavar="[DIRECTORY]...")
@click.option(
    "--ranks", metavar="LIST", help="Audit these ranks only: 0,2 or 0-7. Default: all that are there."
)
@click.option(
    "--critical",
    multiple=True,
    metavar="PATTERNS",
    help="Comma-separated names or globs of tensors that a task must read; replaces the default (the rotary"
    " tables). With a leading + it adds to the default.",
)
@click.option(
    "--fail-on",
    type=click.Choice(options.FAIL_ON),
    default="error",
    show_default=True,
    help="The lowest severity that makes the exit code 1.",
)
@click.option(
    "--select", multiple=True, metavar="RULES", help="Run only these rules: ids, prefixes (MK1) or names."
)
@click.option(
    "--ignore", multiple=True, metavar="RULES", help="Do not run these rules: ids, prefixes (MK1) or names."
)
@click.option("--one-graph", is_flag=True, help="Take all directories as ranks of one graph.")
@click.option(
    "--task-types",
    metavar="HEADER",
    type=click.Path(path_type=Path),
    help="Read the names of task types from this runtime_header.h.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the report as JSON; - for standard output.")
@click.option(
    "--sarif",
    "sarif_file",
    metavar="FILE",
    help="Write SARIF for code scanning; - for standard output. Not written with exit code 2: an empty one"
    " would close every alert.",
)
@click.option(
    "--summary",
    "summary_file",
    metavar="FILE",
    help="Write a job summary in Markdown; - for standard output.",
)
@click.option("--annotations", is_flag=True, help="Print the worst findings as workflow commands, too.")
@click.option("--all", "all_tensors", is_flag=True, help="List every declared tensor.")
@click.option("--allow-empty", is_flag=True, help="A directory without artifacts is no error.")
@click.option(
    "--root",
    metavar="DIRECTORY",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Report file names relative to this directory. Default: GITHUB_WORKSPACE, else the working directory.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    metavar="N",
    help="Read at most so many ranks at once. Default: one a processor.",
)
@click.option("--timings", is_flag=True, help="Print to standard error how long each phase took.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the text; auto: on a terminal, unless NO_COLOR is set.",
)
def check(
    *,
    paths: tuple[str, ...],
    ranks: str | None,
    critical: tuple[str, ...],
    fail_on: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    one_graph: bool,
    task_types: Path | None,
    json_file: str | None,
    sarif_file: str | None,
    summary_file: str | None,
    annotations: bool,
    all_tensors: bool,
    allow_empty: bool,
    root: Path | None,
    workers: int | None,
    timings: bool,
    color: str,
) -> None:
    """Audit directories that hold the kernel and the task graph of every rank.

    Each DIRECTORY is one graph; without one, the working directory is audited. Says which tensors are
    not wired, where they are declared and what that means, and exits 1 if the gate fails.
    """
    files = {"json": json_file, "sarif": sarif_file, "summary": summary_file}
    _check_files(files)
    patterns, given = _checked("--critical", lambda: options.critical_of(critical))
    config = Config(
        paths=paths or (".",),
        root=root or workspace() or Path.cwd(),
        ranks=_checked("--ranks", lambda: options.ranks_of(ranks)),
        critical=patterns,
        critical_given=given,
        fail_on=options.severity_of(fail_on),
        select=_checked("--select", lambda: options.rules_of(options.split(select) or [""], dropping=False))
        if select
        else None,
        ignore=_checked("--ignore", lambda: options.rules_of(options.split(ignore), dropping=True)),
        one_graph=one_graph,
        task_types=task_types,
        allow_empty=allow_empty,
        workers=workers or 0,
    )
    clock = Timings()
    progress = ProgressLine()
    try:
        report = audit(config, progress=progress, timings=clock)
    finally:
        progress.clear()
    with clock.phase("write"):
        out = sys.stderr if "-" in files.values() else sys.stdout  # standard output is then the report's
        report = _write_files(report, {kind: name for kind, name in files.items() if name})
        if annotations:
            write(out, annotations_report.render(report))
        # The text comes last: what became of the files is part of the verdict that it ends with.
        write(out, text.render(report, all_tensors=all_tensors, color=wants_color(out, color)))
    if timings:
        _print_timings(clock)
    sys.exit(report.exit_code)


T = TypeVar("T")


def _checked(option: str, parse: Callable[[], T]) -> T:
    """Names the option in the message of what cannot be parsed."""
    try:
        return parse()
    except click.BadParameter as error:
        error.param_hint = option
        raise


def _render_sarif(report: Report) -> str:
    from mkcov_action.reporters import sarif  # noqa: PLC0415 - sarif-om is slow to import

    return sarif.render(report)


_RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "json": json_report.render,
    "sarif": _render_sarif,
    "summary": summary.render,
}


def _check_files(files: Mapping[str, str | None]) -> None:
    """Refuses what would lose a report: two of them in one place."""
    places: dict[Path, str] = {}
    for kind, name in files.items():
        if name is None:
            continue
        if not name:
            raise click.BadParameter("the name of a file is empty", param_hint=f"--{kind}")
        other = places.setdefault(Path(name) if name == "-" else Path(name).absolute(), kind)
        if other != kind:
            place = "standard output" if name == "-" else clean(name)
            raise click.UsageError(f"--{other} and --{kind} both go to {place}")


def _write_files(report: Report, files: Mapping[str, str]) -> Report:
    """Writes every report asked for, whatever became of another; what failed is in the report returned."""
    written = report
    for kind, name in files.items():
        if kind == "sarif" and not report.replaces_alerts:
            continue
        content = _RENDERERS[kind](written)
        if name == "-":
            write(sys.stdout, content)
        elif reason := write_file(Path(name), content):
            written = written.with_failure(Failure(message=f"cannot write --{kind} {name}: {reason}"))
    return written


def _print_timings(clock: Timings) -> None:
    for phase, seconds in clock.phases.items():
        write(sys.stderr, f"mkcov: {phase:<7} {seconds:8.3f} s\n")
