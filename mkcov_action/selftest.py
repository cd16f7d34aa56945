"""Proof that the gate can fail: faults planted into copies of a user's own artifacts, one at a time."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mkcov_action.artifacts import ArtifactFile, GraphFiles
from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.faults import FAULTS, Fault, RankArtifacts, Site
from mkcov_action.finding import Finding, NotChecked, Severity
from mkcov_action.report import Report

_TRIES = 5  # a site is chosen by dice, and may turn out to be none


@dataclass(frozen=True, slots=True)
class Texts:
    """Both files of one rank, as they are; bytes that are no UTF-8 as lone surrogates."""

    number: int
    kernel: str
    task_graph: str

    def artifacts(self) -> RankArtifacts:
        """The rank, decoded anew, to be edited."""
        return RankArtifacts(self.number, self.kernel, json.loads(self.task_graph))


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one kind of fault.

    `planted` says what was done, None where the graph has no site for it. `seen` are the findings, worst
    first, that the graph did not have before; `named` those of them by the rules that must name the fault;
    `unchecked` is what such a rule says that it could not check.
    """

    fault: Fault
    planted: str | None
    named: tuple[Finding, ...] = ()
    seen: tuple[Finding, ...] = ()
    unchecked: tuple[NotChecked, ...] = ()

    @property
    def caught(self) -> bool:
        """Whether every rule that must name the fault does."""
        return self.fault.named_by <= {finding.rule for finding in self.named}

    @property
    def severity(self) -> Severity | None:
        """The worst severity under which the fault was named."""
        return max((finding.severity for finding in self.named), default=None)


def texts_of(graph: GraphFiles) -> list[Texts]:
    """The files of all ranks of a graph; OSError, EOFError or a decompression error where one cannot be read."""
    found = []
    for rank in graph.ranks:
        if rank.kernel is None or rank.task_graph is None:
            continue
        kernel, task_graph = _text(rank.kernel), _text(rank.task_graph)
        number = rank.rank
        if number is None:  # these names do not tell: task 1's trigger does
            number = json.loads(task_graph)["all_tasks"][1]["trigger_event"] >> 32 & 0xFFFF
        found.append(Texts(number, kernel, task_graph))
    return found


def _text(file: ArtifactFile) -> str:
    with file.open() as stream:
        return stream.read().decode("utf-8", "surrogateescape")


def trials(texts: Sequence[Texts], config: Config, *, seed: int = 0) -> Iterator[Trial]:
    """Plants one fault of each kind and audits; `config` is that of the gate, its paths do not matter."""
    with tempfile.TemporaryDirectory(prefix="mkcov-selftest-") as scratch:
        directory = Path(scratch)
        before = audited([rank.artifacts() for rank in texts], directory, config)
        for fault in FAULTS:
            attempts = (
                planted(fault, texts, f"{seed} {attempt}", directory, config) for attempt in range(_TRIES)
            )
            done = next((attempt for attempt in attempts if attempt is not None), None)
            yield Trial(fault, None) if done is None else _trial(fault, *done, before)


def _trial(fault: Fault, what: str, report: Report, before: Report) -> Trial:
    known = {(finding.rule, finding.message, finding.ranks) for finding in before.findings}
    seen = tuple(f for f in report.findings if (f.rule, f.message, f.ranks) not in known)
    return Trial(
        fault,
        what,
        named=tuple(f for f in seen if f.rule in fault.named_by),
        seen=seen,
        unchecked=tuple(item for item in report.not_checked if item.rule in fault.named_by),
    )


def planted(
    fault: Fault, texts: Sequence[Texts], seed: str, directory: Path, config: Config
) -> tuple[str, Report] | None:
    """Plants a fault where the seed says and audits; what was planted, and the report. None: no place for it."""
    ranks = [rank.artifacts() for rank in texts]
    dice = random.Random(f"{fault.name} {seed}")  # noqa: S311 - to choose a place
    what = fault.planted_at(Site(ranks, dice.choice(ranks), dice))
    return None if what is None else (what, audited(ranks, directory, config))


def audited(ranks: Sequence[RankArtifacts], directory: Path, config: Config) -> Report:
    """Writes edited ranks into a directory that holds nothing else, and audits that."""
    for rank in ranks:
        rank.write(directory)
    # In one process, as these are small, and all ranks: a fault must not be lost to a setting.
    return audit(
        replace(config, paths=(str(directory),), root=directory, ranks=None, one_graph=False, workers=1)
    )
