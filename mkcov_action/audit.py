"""From settings to a report: finds, reads, runs the rules and sums up."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mkcov_action import engine
from mkcov_action.artifacts import Discovery, GraphFiles, discover, nearby, open_regular, reason_of
from mkcov_action.config import Config
from mkcov_action.finding import Failure
from mkcov_action.loader import Loaded, Progress, load
from mkcov_action.report import Report, build_report
from mkcov_action.rules import Context, prepared
from mkcov_action.task_types import read_header

_MOST_RANKS = 16  # listed in a message


@dataclass(slots=True)
class Timings:
    """Seconds of wall time that each phase took; for standard error only, never for a report."""

    phases: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time of the block to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = self.phases.get(name, 0.0) + time.perf_counter() - start


def audit(config: Config, *, progress: Progress | None = None, timings: Timings | None = None) -> Report:
    """Audits what `config` names. Never raises on what the disk holds: failures are in the report."""
    timings = timings or Timings()
    with timings.phase("find"):
        discovery = discover(config)
    failures = list(discovery.failures)
    header = header_of(config.task_types, failures)
    with timings.phase("read"):
        loaded = load(
            discovery.graphs,
            header=header,
            wanted=config.ranks,
            workers=config.workers,
            progress=progress,
            prepare=prepared,
        )
    failures += loaded.failures
    failures += _empty(discovery, loaded, config)
    contexts = [
        Context.of(megakernel, config, ranks)
        for megakernel, ranks in zip(loaded.megakernels, loaded.prepared, strict=True)
        if megakernel.ranks
    ]
    with timings.phase("rules"):
        outcomes = [engine.run(context) for context in contexts]
    with timings.phase("report"):
        return build_report(
            config, list(zip(contexts, outcomes, strict=True)), failures, tuple(discovery.warnings)
        )


def header_of(path: Path | None, failures: list[Failure]) -> Mapping[int, str] | None:
    """The names of task types in a runtime_header.h, if one is given; what is wrong with it joins the failures."""
    if path is None:
        return None
    try:
        with open_regular(path) as stream:
            return read_header(stream.read().decode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        failures.append(Failure(message=f"--task-types {path}: {reason_of(error)}"))
        return None


def _empty(discovery: Discovery, loaded: Loaded, config: Config) -> Iterator[Failure]:
    """Nothing found must not be green; neither must a run that could read no rank at all."""
    for graph, megakernel, unwanted in zip(
        discovery.graphs, loaded.megakernels, loaded.unwanted, strict=True
    ):
        offered = graph.offered | unwanted
        if not config.allow_empty:
            yield from (nothing_in(*directory, graph) for directory in graph.empty.items())
        if offered and not any(rank.files.any for rank in megakernel.ranks):
            message = f"it holds none of the ranks asked for, but {spelled(offered)}"
            yield Failure(message=message, graph=graph.graph)
    ranks = [rank for megakernel in loaded.megakernels for rank in megakernel.ranks if rank.files.any]
    if ranks and not any(rank.audited for rank in ranks):
        yield Failure(message="no rank could be audited: see the findings")


def nothing_in(label: str, directory: Path, graph: GraphFiles) -> Failure:
    """That a directory holds no artifacts, and which ones nearby do."""
    found = [os.path.relpath(path) for path in nearby(directory)]
    hint = f"; there are some in {', '.join(dict.fromkeys(found))}" if found else ""
    which = "" if label == graph.graph else f"{label}: "
    message = (
        f"{which}no generated artifacts here (kernel_<rank>.cu with task_graph_<rank>.json,"
        f" test_rank<rank>.cu with task_graph_rank<rank>.json, or test.cu with task_graph.json){hint}"
    )
    return Failure(message=message, graph=graph.graph)


def spelled(ranks: Collection[int]) -> str:
    """`rank 0`, `ranks 0, 1, 2`."""
    shown = ", ".join(map(str, sorted(ranks)[:_MOST_RANKS]))
    more = f" and {len(ranks) - _MOST_RANKS:,} more" if len(ranks) > _MOST_RANKS else ""
    return f"rank{'' if len(ranks) == 1 else 's'} {shown}{more}"
