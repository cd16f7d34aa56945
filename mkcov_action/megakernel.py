"""The megakernel: every rank of one graph, both halves joined. Frozen, and without I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mkcov_action.artifacts import RankFiles
from mkcov_action.finding import Artifact, Problem
from mkcov_action.kernel_source import Declaration, KernelSource
from mkcov_action.task_graph import TaskGraph


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One tensor-parallel rank. A half that could not be read is None and `problems` says why.

    `type_names` names every task type number of this rank's graph.
    """

    number: int
    files: RankFiles
    kernel: KernelSource | None = None
    task_graph: TaskGraph | None = None
    problems: tuple[Problem, ...] = ()
    type_names: Mapping[int, str] | None = None

    @property
    def audited(self) -> bool:
        """Whether both halves could be read, so that rules can speak about this rank."""
        return self.kernel is not None and self.task_graph is not None

    @property
    def declarations(self) -> Mapping[str, Declaration]:
        """The declared tensors by name, in the order of the kernel; empty without a kernel."""
        return self.kernel.declarations if self.kernel else {}

    @property
    def graph(self) -> TaskGraph:
        """The task graph of an audited rank; ValueError for another."""
        if self.task_graph is None:
            raise ValueError(f"rank {self.number} has no task graph")
        return self.task_graph

    def type_name(self, number: int) -> str:
        """The name of a task type number, `TYPE_<n>` where nothing names it."""
        return (self.type_names or {}).get(number, f"TYPE_{number}")

    def uri(self, artifact: Artifact) -> str | None:
        """The root-relative name of one of the two files, None where it is missing."""
        file = self.files.kernel if artifact is Artifact.KERNEL else self.files.task_graph
        return file.uri if file else None

    def with_problems(self, problems: tuple[Problem, ...]) -> Rank:
        """The same rank with more problems."""
        return replace(self, problems=(*self.problems, *problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Megakernel:
    """All ranks of one graph, in rank order; `graph` is the name that reports give it."""

    graph: str
    ranks: tuple[Rank, ...]

    @property
    def audited_ranks(self) -> tuple[Rank, ...]:
        """The ranks whose two halves could be read."""
        return tuple(rank for rank in self.ranks if rank.audited)

    @property
    def world_size(self) -> int | None:
        """The world size literal of the first kernel that has one."""
        sizes = (rank.kernel.world_size for rank in self.ranks if rank.kernel)
        return next((size for size in sizes if size is not None), None)

    def rank(self, number: int) -> Rank:
        """The rank of that number; KeyError if the graph has none."""
        for rank in self.ranks:
            if rank.number == number:
                return rank
        raise KeyError(number)
