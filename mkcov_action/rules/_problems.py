"""Turns what the readers could not digest into findings: shared by the MK00x rules."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Finding, Place, Problem, ProblemKind
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Rule


def findings_of(
    context: Context, rule: Rule, kind: ProblemKind, *, consequence: str, fix: str
) -> Iterator[Finding]:
    """One finding for each problem of a kind, placed where the reader met it."""
    for rank in context.megakernel.ranks:
        for problem in rank.problems:
            if problem.kind is kind:
                yield rule.finding(
                    message=message_of(rank, problem),
                    consequence=consequence,
                    fix=fix,
                    ranks=(rank.number,),
                    kind=problem.code or problem.message,
                    place=place_of(rank, problem),
                )


def place_of(rank: Rank, problem: Problem) -> Place:
    """The place of a problem in its artifact."""
    return Place(
        rank=rank.number,
        artifact=problem.artifact,
        line=problem.line or 1,
        column=problem.column,
        uri=problem.uri or rank.uri(problem.artifact),
        text="here too",
    )


def message_of(rank: Rank, problem: Problem) -> str:
    """What is wrong, with the file and, for JSON, where in the document."""
    name = (problem.uri or rank.uri(problem.artifact) or "").rpartition("/")[2]
    where = f" at {problem.pointer}" if problem.pointer else ""
    return f"{name}{where}: {problem.message}" if name else f"rank {rank.number}: {problem.message}"
