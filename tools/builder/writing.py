"""Writes artifacts under the names that Mirage's tools use, compressed or not."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal, Protocol, cast

from tools.builder.errors import BuilderError

Naming = Literal["kernel", "test_rank", "test"]
"""A demo's files, `compile(output_dir=…)`'s, or those of a plain `compile()`, which knows one rank."""

Compression = Literal["xz", "gz"]

_NAMES: dict[Naming, tuple[str, str]] = {
    "kernel": ("kernel_{rank}.cu", "task_graph_{rank}.json"),
    "test_rank": ("test_rank{rank}.cu", "task_graph_rank{rank}.json"),
    "test": ("test.cu", "task_graph.json"),
}


class Rank(Protocol):
    """What a builder offers to be written."""

    @property
    def rank(self) -> int:
        """Which of the world's ranks this is."""

    def kernel_text(self) -> str:
        """The text of the kernel file."""

    def task_graph_pieces(self) -> Iterable[str]:
        """The text of the task graph file, in pieces."""


def write_rank(
    rank: Rank,
    directory: Path,
    naming: Naming = "kernel",
    compress: Compression | None = None,
    compress_kernel: Compression | None = None,
) -> tuple[Path, Path]:
    """Writes one rank's kernel and task graph into `directory`, which is made; returns their paths.

    `compress` is for the task graph, which is the large one.
    """
    directory.mkdir(parents=True, exist_ok=True)
    kernel, graph = (directory / name.format(rank=rank.rank) for name in _NAMES[naming])
    return (
        _write(kernel, [rank.kernel_text()], compress_kernel),
        _write(graph, rank.task_graph_pieces(), compress),
    )


def write_ranks(
    ranks: Sequence[Rank],
    directory: Path,
    naming: Naming = "kernel",
    compress: Compression | None = None,
    compress_kernel: Compression | None = None,
) -> list[Path]:
    """Writes every rank of a graph into one directory."""
    if naming == "test" and len(ranks) > 1:
        raise BuilderError("test.cu has no rank in its name: several ranks would overwrite each other")
    return [path for rank in ranks for path in write_rank(rank, directory, naming, compress, compress_kernel)]


def _write(path: Path, pieces: Iterable[str], compress: Compression | None) -> Path:
    path = path.with_name(f"{path.name}.{compress}") if compress else path
    with _open(path, compress) as stream:
        for piece in pieces:
            stream.write(piece.encode())
    return path


@contextmanager
def _open(path: Path, compress: Compression | None) -> Iterator[BinaryIO]:
    if compress == "xz":
        with lzma.open(path, "wb", preset=1) as packed:
            yield cast(BinaryIO, packed)
    elif compress == "gz":
        # No name and no time in the header: equal graphs make equal files.
        with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as zipped:
            yield cast(BinaryIO, zipped)
    else:
        with path.open("wb") as stream:
            yield stream
