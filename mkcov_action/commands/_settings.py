"""What the action's inputs ask for, as settings; what makes no sense is a failure of the run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import click

from mkcov_action import github
from mkcov_action.commands import _options as options
from mkcov_action.commands._workspace import LONGEST_PATH, Workspace
from mkcov_action.config import Config
from mkcov_action.finding import Failure, Severity

DEFAULT_SARIF = "mkcov.sarif"

_SHOWN = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What to audit and which reports to write; a file is None where it is not wanted."""

    config: Config
    sarif: Path | None
    json: Path | None
    summary: bool
    annotations: bool


def settings_of(workspace: Workspace, failures: list[Failure]) -> Settings:
    """What the inputs ask for; whatever makes no sense joins the failures, all of it at once."""
    inputs, problems = github.read_inputs()
    failures += (Failure(message=problem) for problem in problems)
    sarif = _parsed("sarif-file", inputs.sarif_file or DEFAULT_SARIF, workspace.locate, None, failures)
    json = _parsed("json-file", inputs.json_file, workspace.locate, None, failures)
    if json is not None and json == sarif:
        failures.append(Failure(message="inputs sarif-file and json-file name the same file"))
    return Settings(
        config=_config(inputs, workspace, failures),
        sarif=sarif,
        json=json,
        summary=inputs.summary is not False,
        annotations=inputs.annotations is not False,
    )


def _config(inputs: github.Inputs, workspace: Workspace, failures: list[Failure]) -> Config:
    patterns, given = _parsed(
        "critical",
        inputs.critical,
        lambda value: options.critical_of([value]),
        options.critical_of([]),
        failures,
    )
    failures += (
        Failure(message=f"input path: a line is too long: {short(path)}")
        for path in inputs.path
        if len(os.fsencode(path)) >= LONGEST_PATH
    )
    fail_on: Severity | None = Severity.ERROR
    return Config(
        paths=inputs.path or (".",),
        root=workspace.root,
        ranks=_parsed("ranks", inputs.ranks, options.ranks_of, None, failures),
        critical=patterns,
        critical_given=given,
        fail_on=_parsed("fail-on", inputs.fail_on, _fail_on, fail_on, failures),
        select=_parsed("select", inputs.select, _selected, None, failures),
        ignore=_parsed("ignore", inputs.ignore, _ignored, frozenset[str](), failures),
        # Codegen writes all ranks in one go: where one is missing it was not delivered, unless that is meant.
        severities={} if inputs.ranks else {"MK002": Severity.WARNING},
        one_graph=inputs.one_graph or False,
        task_types=Path(inputs.task_types) if inputs.task_types else None,
        allow_empty=inputs.allow_empty or False,
    )


T = TypeVar("T")


def _parsed(
    title: str, value: str | None, parse: Callable[[str], T], default: T, failures: list[Failure]
) -> T:
    """An input's meaning; the default where it was not given or makes no sense, which is a failure."""
    if value is None:
        return default
    try:
        return parse(value)
    except click.BadParameter as error:
        failures.append(Failure(message=f"input {title}: {error.message}"))
    except ValueError as error:
        failures.append(Failure(message=f"input {title}: {error}: {short(value)}"))
    return default


def _fail_on(value: str) -> Severity | None:
    if value.lower() not in options.FAIL_ON:
        raise ValueError(f"it must be one of {', '.join(options.FAIL_ON)}")
    return options.severity_of(value.lower())


def _selected(value: str) -> frozenset[str] | None:
    return options.rules_of(options.split([value]), dropping=False)


def _ignored(value: str) -> frozenset[str]:
    return options.rules_of(options.split([value]), dropping=True)


def short(value: str) -> str:
    """A value for a message: were it whole, an endless one would crowd out the reason."""
    return value if len(value) <= _SHOWN else f"{value[:_SHOWN]}… ({len(value):,} characters)"
