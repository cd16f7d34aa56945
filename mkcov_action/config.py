"""What the user asked for: one frozen Config, handed down and never changed."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from mkcov_action.finding import Severity

# The seed's four names, and the patterns under which Qwen3, Llama and others attach such tables.
DEFAULT_CRITICAL: tuple[str, ...] = (
    "rope_cos",
    "rope_sin",
    "cos_pos_embed",
    "sin_pos_embed",
    "*rope_cos*",
    "*rope_sin*",
    "cos_pos*",
    "sin_pos*",
    "*_cos_cached",
    "*_sin_cached",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of one audit.

    `paths` are directories as given; `root` is what reported file names are relative to.
    `critical` holds the patterns in force, `critical_given` those of them that the user wrote.
    `fail_on` is the lowest severity that fails the gate (None: never). `select` and `ignore`
    hold rule ids, already resolved; `severities` re-grades the findings of a rule id, unless the rule is
    locked. `workers` 0 means one process a rank, up to the CPU count.
    """

    paths: tuple[str, ...] = (".",)
    root: Path = Path()
    ranks: tuple[int, ...] | None = None
    critical: tuple[str, ...] = DEFAULT_CRITICAL
    critical_given: tuple[str, ...] = ()
    fail_on: Severity | None = Severity.ERROR
    select: frozenset[str] | None = None
    ignore: frozenset[str] = frozenset()
    severities: Mapping[str, Severity] = field(default_factory=dict)
    one_graph: bool = False
    task_types: Path | None = None
    allow_empty: bool = False
    workers: int = 0

    def is_critical(self, tensor: str) -> bool:
        """Whether a tensor matches a critical pattern (case-insensitive glob)."""
        return matcher(self.critical)(tensor.lower()) is not None


@lru_cache
def matcher(patterns: tuple[str, ...]) -> Callable[[str], re.Match[str] | None]:
    """Matches a name that is already in lower case against any of some globs."""
    globs = "|".join(fnmatch.translate(pattern.lower()) for pattern in patterns)
    return re.compile(globs or r"(?!)").match
