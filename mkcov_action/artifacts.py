"""Finds, pairs and opens the files of each rank, and refuses what leaves its directory."""

from __future__ import annotations

import gzip
import lzma
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast
from urllib.parse import quote

from mkcov_action.config import Config
from mkcov_action.finding import Artifact, Failure

# The demos' names, those of compile(output_dir=…), and those of its temporary directory, which do
# not say the rank (mirage python/mirage/mpk/persistent_kernel.py). The order is that of preference.
_NAMINGS = (
    (r"kernel_(-?[0-9]{1,9})\.cu", r"task_graph_(-?[0-9]{1,9})\.json"),
    (r"test_rank(-?[0-9]{1,9})\.cu", r"task_graph_rank(-?[0-9]{1,9})\.json"),
    (r"test()\.cu", r"task_graph()\.json"),
)
_COMPRESSIONS = ("", ".xz", ".gz")
_PATTERNS = tuple(
    (naming, artifact, re.compile(pattern))
    for naming, patterns in enumerate(_NAMINGS)
    for artifact, pattern in zip(Artifact, patterns, strict=True)
)

DECOMPRESSION_ERRORS = (lzma.LZMAError, EOFError, gzip.BadGzipFile, OSError)


def open_regular(path: Path) -> BinaryIO:
    """Opens a file for reading; OSError if it is no regular one or cannot be read."""
    # Non-blocking, and judged after opening: a FIFO would hang, a swapped file would slip in.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError("not a regular file")
    return stream


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """One file: where it lies, and the root-relative, percent-encoded name that reports give it.

    A compressed file goes by its name without the suffix.
    """

    path: Path
    uri: str
    compression: str = ""

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The (decompressed) bytes; OSError if it is no regular file or cannot be read."""
        with open_regular(self.path) as stream:
            if self.compression == ".xz":
                with lzma.open(stream) as plain:
                    yield cast(BinaryIO, plain)
            elif self.compression == ".gz":
                with gzip.open(stream) as plain:
                    yield cast(BinaryIO, plain)
            else:
                yield stream


@dataclass(frozen=True, slots=True, kw_only=True)
class RankFiles:
    """The two halves of a rank; `rank` is None where the file names do not say it."""

    rank: int | None
    kernel: ArtifactFile | None = None
    task_graph: ArtifactFile | None = None
    rivals: tuple[ArtifactFile, ...] = ()

    @property
    def any(self) -> bool:
        """Whether there is a file at all: a rank that was asked for may have none."""
        return self.kernel is not None or self.task_graph is not None

    @property
    def size(self) -> int:
        """About how many bytes the task graph has (compressed ones are some hundred times larger)."""
        try:
            on_disk = self.task_graph.path.stat().st_size if self.task_graph else 0
        except OSError:
            return 0
        return on_disk * 100 if self.task_graph and self.task_graph.compression else on_disk


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphFiles:
    """The ranks to read for one graph, in rank order.

    `offered` are the ranks that file names show, wanted or not; `empty` are the directories, as
    given, that hold no artifact at all.
    """

    graph: str
    ranks: tuple[RankFiles, ...]
    offered: frozenset[int] = frozenset()
    empty: Mapping[str, Path] = field(default_factory=dict)


@dataclass(slots=True)
class Discovery:
    """What lies in the given directories; `failures` are refusals and unusable paths."""

    graphs: list[GraphFiles] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def discover(config: Config) -> Discovery:
    """Finds the artifacts of every given directory; never raises on what the disk holds."""
    discovery = Discovery()
    root = Path(os.path.realpath(config.root))
    directories: dict[Path, str] = {}
    for given in config.paths:
        try:
            directory = _directory(given)
        except (OSError, ValueError) as error:
            where = f"{given}: " if given else ""
            discovery.failures.append(Failure(message=f"{where}{reason_of(error)}"))
        else:
            directories.setdefault(directory, given)
    labels = _labels(directories, root)
    if outside := [label for directory, label in labels.items() if not directory.is_relative_to(root)]:
        discovery.warnings.append(
            f"{', '.join(outside)}: outside the root, so files are reported as DIRECTORY/FILE (see --root)"
        )
    found = {
        directory: list(_scan(directory, labels[directory], root, discovery)) for directory in directories
    }
    if config.one_graph and found:
        entries = [entry for listed in found.values() for entry in listed]
        graph = GraphFiles(
            graph=_joint_label(list(found), root),
            ranks=_pair(entries, config.ranks),
            offered=_offered(entries),
            empty={labels[directory]: directory for directory, entries in found.items() if not entries},
        )
        discovery.graphs.append(graph)
    else:
        discovery.graphs += (
            GraphFiles(
                graph=labels[directory],
                ranks=_pair(entries, config.ranks),
                offered=_offered(entries),
                empty={} if entries else {labels[directory]: directory},
            )
            for directory, entries in found.items()
        )
    return discovery


def _offered(entries: Iterable[_Entry]) -> frozenset[int]:
    return frozenset(entry.rank for entry in entries if entry.rank is not None)


def _directory(given: str) -> Path:
    """The real path of a directory that can be listed; OSError or ValueError if it is none."""
    if not given:  # an unset variable: the working directory is not what was meant
        raise ValueError("the name of a directory is empty")
    directory = Path(os.path.realpath(given))
    if not stat.S_ISDIR(directory.stat().st_mode):
        raise NotADirectoryError(0, "not a directory; give the directory that holds the generated files")
    os.scandir(directory).close()
    return directory


def reason_of(error: BaseException) -> str:
    """An error's reason without the path that Python puts behind it."""
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _labels(directories: dict[Path, str], root: Path) -> dict[Path, str]:
    """The name of each graph: relative to the root, else as few last components as tell them apart."""
    labels: dict[Path, str] = {}
    for directory in directories:
        if directory.is_relative_to(root):
            labels[directory] = directory.relative_to(root).as_posix()
            continue
        for count in range(1, len(directory.parts) + 1):
            labels[directory] = "/".join(directory.parts[-count:]).lstrip("/") or "."
            if list(labels.values()).count(labels[directory]) == 1:
                break
    return labels


def _joint_label(directories: list[Path], root: Path) -> str:
    common = Path(os.path.commonpath(directories))
    return _labels({common: ""}, root)[common]


@dataclass(frozen=True, slots=True)
class _Entry:
    rank: int | None
    artifact: Artifact
    directory: Path
    naming: int
    file: ArtifactFile


def _scan(directory: Path, label: str, root: Path, discovery: Discovery) -> Iterator[_Entry]:
    """The artifacts of one directory; plain files hide their compressed copies."""
    names = sorted(entry.name for entry in os.scandir(directory))
    seen: set[str] = set()
    for suffix in _COMPRESSIONS:
        for name in names:
            plain = name.removesuffix(suffix)
            if not name.endswith(suffix) or (match := _match(plain)) is None:
                continue
            naming, artifact, digits = match
            if plain in seen:
                discovery.warnings.append(f"{label}/{name}: not read, {plain} is there as well")
                continue
            seen.add(plain)
            if digits.startswith("-"):
                discovery.failures.append(Failure(message=f"{label}/{name}: a rank cannot be negative"))
                continue
            if _leaves(directory / name, directory):
                message = f"{label}/{name}: refused, it leads out of its directory through a symbolic link"
                discovery.failures.append(Failure(message=message))
                continue
            rank = int(digits) if digits else None
            uri = _uri(directory, plain, root)
            file = ArtifactFile(directory / name, uri, suffix)
            yield _Entry(rank, artifact, directory, naming, file)


def _match(name: str) -> tuple[int, Artifact, str] | None:
    for naming, artifact, pattern in _PATTERNS:
        if match := pattern.fullmatch(name):
            return naming, artifact, match.group(1)
    return None


def _leaves(path: Path, directory: Path) -> bool:
    try:
        return not Path(os.path.realpath(path, strict=True)).is_relative_to(directory)
    except (OSError, RuntimeError):  # a dangling link or a loop: found unreadable when opened
        return False


def _uri(directory: Path, name: str, root: Path) -> str:
    path = directory / name
    relative = path.relative_to(root) if path.is_relative_to(root) else Path(directory.name, name)
    return quote(os.fsencode(relative.as_posix()), safe="/")


def _pair(entries: Iterable[_Entry], wanted: tuple[int, ...] | None) -> tuple[RankFiles, ...]:
    """Joins the halves of each rank; a second file for the same half is a rival."""
    # Ranks without a number stand apart by directory until they are read.
    halves: dict[tuple[int, Path | None], dict[Artifact, list[_Entry]]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.directory, entry.naming)):
        key = (-1, entry.directory) if entry.rank is None else (entry.rank, None)
        if wanted is None or entry.rank is None or entry.rank in wanted:
            halves.setdefault(key, {}).setdefault(entry.artifact, []).append(entry)
    for rank in wanted or ():
        halves.setdefault((rank, None), {})
    ranks = (_rank_files(None if rank < 0 else rank, found) for (rank, _), found in halves.items())
    return tuple(sorted(ranks, key=lambda files: files.rank or 0))


def _rank_files(rank: int | None, halves: dict[Artifact, list[_Entry]]) -> RankFiles:
    first = {artifact: entries[0].file for artifact, entries in halves.items()}
    return RankFiles(
        rank=rank,
        kernel=first.get(Artifact.KERNEL),
        task_graph=first.get(Artifact.TASK_GRAPH),
        rivals=tuple(entry.file for entries in halves.values() for entry in entries[1:]),
    )


def nearby(directory: Path, limit: int = 5) -> list[Path]:
    """Directories close to `directory` that do hold artifacts: below it, then beside it."""
    found: list[Path] = []
    budget = 2000  # directories looked into: this only serves an error message
    queue = [(directory, 0), (directory.parent, 2)]
    seen: set[Path] = set()
    while queue and len(found) < limit and budget:
        current, depth = queue.pop(0)
        budget -= 1
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
            children = [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        if current not in seen and current != directory and any(is_artifact(e.name) for e in entries):
            found.append(current)
        seen.add(current)
        if depth < 3:
            queue.extend((child, depth + 1) for child in children if child not in seen)
    return found


def is_artifact(name: str) -> bool:
    """Whether a file's name is that of a kernel or a task graph, plain or compressed."""
    return any(name.endswith(suffix) and _match(name.removesuffix(suffix)) for suffix in _COMPRESSIONS)
