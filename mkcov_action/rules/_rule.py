"""What a rule is: its identity, its stage, its check and its documentation page."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mkcov_action.finding import Finding, NotChecked, Severity
from mkcov_action.rules._context import Context

__all__ = ["Check", "Context", "Result", "Rule", "Stage", "rule"]


class Stage(StrEnum):
    """When a rule runs; a stage may assume that what the ones before it check holds."""

    ARTIFACTS = "artifacts"
    WIRING = "wiring"
    DISPATCH = "dispatch"
    ORDER = "order"
    MEMORY = "memory"
    RANKS = "ranks"
    BASELINE = "baseline"


Result = Finding | NotChecked
Check = Callable[[Context], Iterator[Result]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue. `doc` is its page: what it finds, why it matters, how to fix it.

    A `locked` rule says that an artifact could not be audited at all: it cannot be deselected,
    re-graded or suppressed, or the gate could be emptied.
    """

    id: str
    name: str
    severity: Severity
    stage: Stage
    since: str
    check: Check
    doc: str
    locked: bool = False

    @property
    def summary(self) -> str:
        """What the rule finds, in a sentence: the first line of its page."""
        return self.doc.partition("\n")[0]

    def finding(self, **fields: Any) -> Finding:
        """A finding of this rule; `severity` may be given where the rule's own does not hold."""
        return Finding(**{"rule": self.id, "name": self.name, "severity": self.severity, **fields})

    def not_checked(self, reason: str) -> NotChecked:
        """Says what this rule could not decide."""
        return NotChecked(rule=self.id, reason=reason)

    def __call__(self, context: Context) -> Iterable[Result]:
        return self.check(context)


def rule(
    *, id: str, name: str, severity: Severity, stage: Stage, since: str, locked: bool = False
) -> Callable[[Check], Rule]:
    """Makes a rule of a check; the check's docstring is the rule's documentation page."""

    def decorate(check: Check) -> Rule:
        doc = textwrap.dedent(inspect.getdoc(check) or "").strip()
        return Rule(id, name, severity, stage, since, check, doc, locked)

    return decorate
