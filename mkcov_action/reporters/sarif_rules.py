"""The catalogue as SARIF's reporting descriptors: what code scanning shows around an alert.

All rules are listed, whether they found anything or not: an index then means the same rule in every
run, and the list says what was looked for.
"""

from __future__ import annotations

import re

from sarif_om import MultiformatMessageString, ReportingConfiguration, ReportingDescriptor

from mkcov_action.finding import Severity
from mkcov_action.rules import RULES, Rule, Stage

CATALOGUE: tuple[Rule, ...] = tuple(sorted(RULES, key=lambda rule: rule.id))
"""The rules in the order in which they are listed."""

INDEX = {rule.id: index for index, rule in enumerate(CATALOGUE)}
"""Where a rule stands in the list."""

_DESCRIPTION_LIMIT = 1024  # characters that code scanning shows of a description
_PROBLEM_SEVERITIES = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "recommendation"}
_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)

# Precision belongs to a rule, confidence to a finding. Where a rule compares byte ranges or the order
# across ranks some of its findings are only possible; all others read facts off the artifacts.
_LESS_PRECISE = (Stage.MEMORY, Stage.RANKS)


def descriptors() -> list[ReportingDescriptor]:
    """Every rule with its help, in catalogue order."""
    return [_descriptor(rule) for rule in CATALOGUE]


def _descriptor(rule: Rule) -> ReportingDescriptor:
    summary, sections = _pages(rule.doc)
    return ReportingDescriptor(
        id=rule.id,
        name=rule.name,
        short_description=MultiformatMessageString(text=summary),
        full_description=MultiformatMessageString(text=_description(summary, sections)),
        help=MultiformatMessageString(text=_HEADING.sub(r"\1:", rule.doc), markdown=_page(rule)),
        default_configuration=ReportingConfiguration(level=rule.severity.label),
        properties={
            "tags": ["correctness", "megakernel", "mirage", rule.stage.value],
            "precision": "high" if rule.stage in _LESS_PRECISE else "very-high",
            "problem.severity": _PROBLEM_SEVERITIES[rule.severity],
        },
    )


def _pages(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph of a rule's page, and its sections by heading, each on one line."""
    summary, *parts = _HEADING.split(doc)
    texts = [" ".join(text.split()) for text in parts[1::2]]
    return " ".join(summary.split()), dict(zip(parts[::2], texts, strict=True))


def _description(summary: str, sections: dict[str, str]) -> str:
    found = sections.get("What it finds", summary)
    return found if len(found) <= _DESCRIPTION_LIMIT else summary


def _page(rule: Rule) -> str:
    return (
        f"# {rule.id}: {rule.name}\n\n"
        f"Severity **{rule.severity.label}**, stage {rule.stage.value}, since {rule.since}\n\n{rule.doc}\n"
    )
