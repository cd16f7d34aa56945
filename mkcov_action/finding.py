"""The words a verdict is made of: severities, problems, places and findings."""

from __future__ import annotations

import hashlib
import re
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from pathlib import Path


class Severity(IntEnum):
    """How bad a finding is; ordered, so that the gate can compare."""

    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def label(self) -> str:
        """The word of every output: `note`, `warning` or `error`."""
        return self.name.lower()


class Confidence(StrEnum):
    """Whether the artifacts prove the finding; never changes its severity."""

    CERTAIN = "certain"
    POSSIBLE = "possible"


class Artifact(StrEnum):
    """One of the two files that the generator writes for a rank."""

    KERNEL = "kernel"
    TASK_GRAPH = "task_graph"


class ProblemKind(StrEnum):
    """Why an artifact could not be read; each is one MK0xx rule's business."""

    MISSING = "missing"
    MALFORMED = "malformed"
    SCHEMA = "schema"
    UNRECOGNISED = "unrecognised"
    UNREADABLE = "unreadable"
    MISLABELLED = "mislabelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a reader could not digest: readers return these and never raise on bad content.

    `line` and `column` are 1-based; `pointer` is a JSON pointer into the task graph; `uri` names a
    file other than the rank's own artifact; `code` names the sort of problem without its particulars.
    """

    kind: ProblemKind
    artifact: Artifact
    message: str
    code: str = ""
    line: int | None = None
    column: int | None = None
    pointer: str | None = None
    uri: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class Operator:
    """What tells operators apart until the order analysis exists: a task type and its variant."""

    type_name: str
    variant: int

    def __str__(self) -> str:
        return f"{self.type_name} variant {self.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where something stands, in the words of the graph; the engine turns it into a line.

    Without a line it is the declaration of `tensor`, else the dispatch branch of `operator`,
    else the dispatcher, all in the kernel of `rank`. `uri` names a file that is not one of the
    rank's two; `text` says what stands there.
    """

    rank: int
    artifact: Artifact = Artifact.KERNEL
    tensor: str | None = None
    operator: Operator | None = None
    line: int | None = None
    column: int | None = None
    uri: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A place as a reader opens it: `uri` is relative to the root, `line` and `column` 1-based."""

    uri: str
    line: int
    column: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One defect, as a rule saw it in one rank or, after folding, on all ranks that share it.

    `message` says what is wrong and names it, `consequence` what that does to the model, `fix`
    what to do. `kind` tells findings of one rule apart that must not be folded into one; `slots` are
    the sides and indices of the operator's slots that are at fault, `tasks` how many of its tasks are.
    `members` lists the tensors (or layers) of a fault that repeats.
    """

    rule: str
    name: str
    severity: Severity
    message: str
    consequence: str
    fix: str
    ranks: tuple[int, ...]
    graph: str = ""
    tensor: str | None = None
    operator: Operator | None = None
    kind: str = ""
    slots: tuple[tuple[str, int], ...] = ()
    tasks: int = 0
    confidence: Confidence = Confidence.CERTAIN
    members: tuple[str, ...] = ()
    place: Place | None = None
    mentions: tuple[Place, ...] = ()
    location: Location | None = None
    related: tuple[Location, ...] = ()
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotChecked:
    """What a rule could not decide from the two files, and why: said, never guessed."""

    rule: str
    reason: str
    graph: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a run is no verdict: bad usage of a path (exit 2) or an internal error (exit 3)."""

    message: str
    internal: bool = False
    graph: str = ""
    detail: str = field(default="", compare=False)


def describe(error: BaseException) -> str:
    """An internal error in one line: its type, its text and where in this package it came up."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


_NUMBER = re.compile(r"\d+")


def family_of(name: str) -> str:
    """The family of a tensor: its name with every number as `*`, so that layers fall together."""
    return _NUMBER.sub("*", name)


_DIGITS = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[tuple[str, int, str], ...]:
    """A sort key under which layer_2 comes before layer_10, however long a number is."""
    parts = _DIGITS.split(name)
    return tuple(
        ("", len(part.lstrip("0")), part) if index % 2 else (part, 0, "") for index, part in enumerate(parts)
    )


def ranges(numbers: Iterable[int]) -> str:
    """Numbers with runs drawn together: `0-3, 5`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def fingerprint_of(finding: Finding) -> str:
    """The identity of a finding across regenerated kernels (64 hex digits).

    Made of graph, rule, family, operator type and kind; never of task or event ids, lines,
    offsets or ranks.
    """
    parts = (
        finding.graph,
        finding.rule,
        family_of(finding.tensor or ""),
        finding.operator.type_name if finding.operator else "",
        finding.kind,
    )
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
