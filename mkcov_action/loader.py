"""Reads the artifacts of every rank, in parallel, and joins them to megakernels."""

from __future__ import annotations

import gc
import itertools
import os
import zlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mkcov_action.artifacts import DECOMPRESSION_ERRORS, ArtifactFile, GraphFiles, RankFiles, reason_of
from mkcov_action.finding import Artifact, Failure, Problem, ProblemKind, describe
from mkcov_action.kernel_source import KernelSource, read_kernel_source
from mkcov_action.megakernel import Megakernel, Rank
from mkcov_action.processes import Lost, in_processes
from mkcov_action.task_graph import TaskGraph, read_task_graph
from mkcov_action.task_types import WORKER_TYPES, name_task_types

_READ_ERRORS = (*DECOMPRESSION_ERRORS, zlib.error)

_IN_PROCESS_BYTES = 16 << 20
"""Below this size on disk all ranks are read faster than a second process starts."""

Prepared = Mapping[Hashable, Any]
"""What was worked out of a rank by itself, in the process that read it."""

Progress = Callable[[int, int], None]
"""Called with the number of ranks read and the number of all ranks."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The megakernels, and what failed for reasons of our own.

    `prepared` holds for each of them what was prepared of its ranks, by rank number.
    `unwanted` holds for each of them the ranks that only their content told, and that were not asked for.
    """

    megakernels: tuple[Megakernel, ...]
    failures: tuple[Failure, ...]
    unwanted: tuple[frozenset[int], ...] = ()
    prepared: tuple[Mapping[int, Prepared], ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    rank: Rank
    failure: str = ""
    prepared: Prepared = field(default_factory=dict)


def load(
    graphs: Sequence[GraphFiles],
    *,
    header: Mapping[int, str] | None = None,
    wanted: tuple[int, ...] | None = None,
    workers: int = 0,
    progress: Progress | None = None,
    prepare: Callable[[Rank], Prepared] | None = None,
) -> Loaded:
    """Reads every rank of every graph, one process a rank up to `workers` (0: one a processor).

    `header` is a fork's task type enum, `wanted` the ranks asked for. `prepare` works out of a rank
    what is wanted of it later, where that gains from the other processes. The result does not depend
    on the number of workers.
    """
    files = [rank for graph in graphs for rank in graph.ranks]
    read = partial(_read_rank, header=header, prepare=prepare)
    results = iter(_read_all(files, read, _worker_count(files, workers), progress or _silent))
    megakernels: list[Megakernel] = []
    failures: list[Failure] = []
    unwanted: list[frozenset[int]] = []
    prepared: list[Mapping[int, Prepared]] = []
    for graph in graphs:
        items = list(itertools.islice(results, len(graph.ranks)))
        failures += [_failure(graph.graph, item) for item in items if item.failure]
        ranks = [item.rank for item in items if wanted is None or item.rank.number in wanted]
        unwanted.append(
            frozenset(item.rank.number for item in items).difference(rank.number for rank in ranks)
        )
        joined = _join(ranks)
        megakernels.append(Megakernel(graph=graph.graph, ranks=joined))
        kept = {id(rank.files): rank.number for rank in joined}
        prepared.append(
            {kept[id(item.rank.files)]: item.prepared for item in items if id(item.rank.files) in kept}
        )
    return Loaded(tuple(megakernels), tuple(failures), tuple(unwanted), tuple(prepared))


def _silent(done: int, total: int) -> None:
    """The progress of those who do not watch."""
    del done, total


def _failure(graph: str, item: _Read) -> Failure:
    return Failure(message=f"reading rank {item.rank.number}: {item.failure}", internal=True, graph=graph)


def _is_long(files: Sequence[RankFiles]) -> bool:
    return sum(rank.size for rank in files) >= _IN_PROCESS_BYTES


def _worker_count(files: Sequence[RankFiles], workers: int) -> int:
    if not workers:
        if not _is_long(files):
            return 1
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(workers, len(files)))


def _read_all(
    files: Sequence[RankFiles], read: Callable[..., _Read], workers: int, progress: Progress
) -> list[_Read]:
    if workers == 1:
        results = []
        for done, item in enumerate(files):
            if _is_long(files):
                progress(done, len(files))
            results.append(read(item))
        return results
    answers = in_processes(partial(read, apart=True), files, at_most=workers, progress=progress)
    return [
        _Read(_unread(item), "the reading process was killed (out of memory?)")
        if isinstance(answer, Lost)
        else answer
        for item, answer in zip(files, answers, strict=True)
    ]


def _unread(files: RankFiles) -> Rank:
    return Rank(number=files.rank or 0, files=files)


def _read_rank(
    files: RankFiles,
    *,
    header: Mapping[int, str] | None,
    prepare: Callable[[Rank], Prepared] | None,
    apart: bool = False,
) -> _Read:
    """Reads a rank; in a process of its own it also prepares it."""
    # Millions of short-lived, acyclic objects: the collector would only walk them.
    enabled = gc.isenabled()
    gc.disable()
    try:
        rank = _rank(files, header)
        return _Read(rank, prepared=_prepared(rank, prepare) if apart and prepare else {})
    except Exception as error:  # noqa: BLE001 - a bug of ours must not cost the other ranks their audit
        return _Read(_unread(files), describe(error))
    finally:
        if enabled:
            gc.enable()


def _prepared(rank: Rank, prepare: Callable[[Rank], Prepared]) -> Prepared:
    # What fails here fails again where it is needed, and is told there.
    with suppress(Exception):
        return prepare(rank) if rank.audited else {}
    return {}


def _rank(files: RankFiles, header: Mapping[int, str] | None) -> Rank:
    kernel, kernel_problems = _kernel(files.kernel)
    graph, graph_problems = _task_graph(files.task_graph)
    number = files.rank
    if number is None:
        number = graph.rank if graph and graph.rank is not None else 0
    dispatcher = kernel.dispatcher if kernel else None
    names = None
    if graph is not None:
        names = name_task_types(slot_counts(graph), dispatcher.type_names if dispatcher else None, header)
        own = WORKER_TYPES.keys() & set(graph.task_type[:2])
        names = {number: WORKER_TYPES[number] for number in sorted(own)} | names
    return Rank(
        number=number,
        files=files,
        kernel=kernel,
        task_graph=graph,
        problems=(*kernel_problems, *graph_problems, *_mislabelled(files, number, graph)),
        type_names=names,
    )


def slot_counts(graph: TaskGraph) -> dict[int, frozenset[tuple[int, int]]]:
    """The (inputs, outputs) counts that the tasks of each type number of the model show."""
    counts: dict[int, set[tuple[int, int]]] = {}
    lists = graph.tensor_lists
    for number, _, inputs, outputs in graph.classes() - graph.own_classes():
        counts.setdefault(number, set()).add((len(lists[inputs]), len(lists[outputs])))
    return {number: frozenset(found) for number, found in counts.items()}


def _kernel(file: ArtifactFile | None) -> tuple[KernelSource | None, tuple[Problem, ...]]:
    if file is None:
        return None, (_missing(Artifact.KERNEL),)
    try:
        with file.open() as stream:
            data = stream.read()
    except _READ_ERRORS as error:
        return None, (_unreadable(Artifact.KERNEL, error),)
    return read_kernel_source(data)


def _task_graph(file: ArtifactFile | None) -> tuple[TaskGraph | None, tuple[Problem, ...]]:
    if file is None:
        return None, (_missing(Artifact.TASK_GRAPH),)
    try:
        return read_task_graph(file.open)
    except _READ_ERRORS as error:
        return None, (_unreadable(Artifact.TASK_GRAPH, error),)


def _missing(artifact: Artifact) -> Problem:
    noun = "kernel" if artifact is Artifact.KERNEL else "task graph"
    return Problem(kind=ProblemKind.MISSING, artifact=artifact, message=f"the {noun} is missing")


def _unreadable(artifact: Artifact, error: BaseException) -> Problem:
    return Problem(kind=ProblemKind.UNREADABLE, artifact=artifact, message=reason_of(error))


def _mislabelled(files: RankFiles, number: int, graph: TaskGraph | None) -> list[Problem]:
    problems = []
    if graph is not None and graph.rank is not None and graph.rank != number:
        problems.append(
            _claim(f"the file name says rank {number}, its task 1 triggers an event of rank {graph.rank}")
        )
    message = f"a second file claims rank {number} and was not read"
    return [*problems, *(_claim(message, rival) for rival in files.rivals)]


def _claim(message: str, file: ArtifactFile | None = None) -> Problem:
    return Problem(
        kind=ProblemKind.MISLABELLED,
        artifact=Artifact.TASK_GRAPH,
        message=message,
        uri=file.uri if file else None,
    )


def _join(ranks: Iterable[Rank]) -> tuple[Rank, ...]:
    """Orders the ranks; a second one of the same number is not audited and leaves a problem."""
    joined: dict[int, Rank] = {}
    for rank in ranks:
        if rank.number not in joined or not joined[rank.number].files.any:
            joined[rank.number] = rank
            continue
        if not rank.files.any:
            continue
        rivals = (file for file in (rank.files.kernel, rank.files.task_graph) if file)
        message = f"a second file claims rank {rank.number} and was not audited"
        problems = tuple(_claim(message, file) for file in rivals)
        joined[rank.number] = joined[rank.number].with_problems(problems)
    return tuple(joined[number] for number in sorted(joined))
