"""Runs the rules stage by stage, folds what they saw to one finding a cause, and orders it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from mkcov_action.config import Config
from mkcov_action.finding import (
    Artifact,
    Failure,
    Finding,
    Location,
    NotChecked,
    Operator,
    Place,
    describe,
    family_of,
    fingerprint_of,
    natural,
)
from mkcov_action.megakernel import Megakernel
from mkcov_action.precedence import without_explained
from mkcov_action.rules import RULES, Context, Rule, Stage

_STAGES = tuple(Stage)
_MOST_RELATED = 10


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the rules said about one graph, worst finding first."""

    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    failures: tuple[Failure, ...]


def run(context: Context, rules: Sequence[Rule] = RULES) -> Outcome:
    """Runs the selected rules over one megakernel; a rule that crashes costs only its own findings."""
    seen: list[Finding] = []
    not_checked: dict[NotChecked, None] = {}
    failures: list[Failure] = []
    graph = context.megakernel.graph
    for rule in sorted(rules, key=lambda rule: _STAGES.index(rule.stage)):
        if not is_selected(rule, context.config):
            continue
        try:
            results = list(rule(context))
        except Exception as error:  # noqa: BLE001 - reported as exit 3; the other rules still report
            failures.append(_failure(rule, context, error))
            continue
        seen += [_graded(result, rule, context) for result in results if isinstance(result, Finding)]
        for result in results:
            if isinstance(result, NotChecked):
                not_checked[replace(result, graph=graph)] = None
    folded = [_placed(finding, context.megakernel) for finding in fold(without_explained(seen, context))]
    return Outcome(tuple(sorted(folded, key=_worst_first)), tuple(not_checked), tuple(failures))


def is_selected(rule: Rule, config: Config) -> bool:
    """Whether the settings let a rule run; a locked one always does."""
    if rule.locked:
        return True
    return (config.select is None or rule.id in config.select) and rule.id not in config.ignore


def _graded(finding: Finding, rule: Rule, context: Context) -> Finding:
    """The finding with the severity that the user gave its rule; a locked rule keeps its own."""
    severity = None if rule.locked else context.config.severities.get(rule.id)
    return finding if severity is None else replace(finding, severity=severity)


def _failure(rule: Rule, context: Context, error: Exception) -> Failure:
    ranks = [rank.number for rank in context.megakernel.ranks if _crashes_on(rule, context, rank.number)]
    where = f" on rank {', '.join(map(str, ranks))}" if ranks else ""
    message = f"rule {rule.id} {rule.name}{where}: {describe(error)}"
    return Failure(message=message, internal=True, graph=context.megakernel.graph)


def _crashes_on(rule: Rule, context: Context, number: int) -> bool:
    alone = replace(context.megakernel, ranks=(context.megakernel.rank(number),))
    try:
        list(rule(Context(alone, context.config)))
    except Exception:  # noqa: BLE001 - that is the question
        return True
    return False


def fold(findings: Iterable[Finding]) -> list[Finding]:
    """Joins what one cause shows on several ranks, and in several layers, to one finding."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        key = (
            finding.rule,
            finding.severity,
            finding.confidence,
            family_of(finding.tensor or ""),
            finding.operator.type_name if finding.operator else "",
            finding.kind,
        )
        groups.setdefault(key, []).append(finding)
    return [_folded(group) for group in groups.values()]


def _folded(group: list[Finding]) -> Finding:
    group = sorted(
        group, key=lambda finding: (natural(finding.tensor or ""), finding.ranks, finding.operator)
    )
    first = group[0]
    tensors = sorted({finding.tensor for finding in group if finding.tensor}, key=natural)
    more = [tensor for tensor in tensors if tensor != first.tensor]
    same = f"; the same holds for {len(more):,} more of its family: {_some(more)}" if more else ""
    same += _other_variants(group)
    elsewhere = [finding.place for finding in group[1:] if finding.place and finding.place != first.place]
    return replace(
        first,
        message=first.message + same,
        ranks=tuple(sorted({rank for finding in group for rank in finding.ranks})),
        members=first.members or (tuple(tensors) if more else ()),
        mentions=(*first.mentions, *elsewhere, *(_declared(first, tensor) for tensor in more)),
    )


def _other_variants(group: Sequence[Finding]) -> str:
    """What the first message, which counts one operator's tasks, leaves out of its type's others."""
    tasks: dict[Operator, int] = {}
    for finding in group:  # by rank: as in the first message, the lowest one's tasks are counted
        if finding.operator and finding.tasks:
            tasks.setdefault(finding.operator, finding.tasks)
    others = list(tasks)[1:]
    if not others:
        return ""
    counts = sum(tasks[operator] for operator in others)
    variants = _some([str(operator.variant) for operator in others])
    return f"; the same holds for {counts:,} task{'' if counts == 1 else 's'} of variant {variants}"


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else f"{names[0]}, {names[1]} … {names[-1]}"


def _declared(finding: Finding, tensor: str) -> Place:
    return Place(rank=finding.ranks[0], tensor=tensor, text=tensor)


def _placed(finding: Finding, megakernel: Megakernel) -> Finding:
    place = finding.place or Place(rank=finding.ranks[0], tensor=finding.tensor, operator=finding.operator)
    placed = replace(
        finding,
        graph=megakernel.graph,
        location=location_of(place, megakernel),
        related=tuple(location_of(mention, megakernel) for mention in finding.mentions[:_MOST_RELATED]),
    )
    return replace(placed, fingerprint=fingerprint_of(placed))


def location_of(place: Place, megakernel: Megakernel) -> Location:
    """The file and line of a place: declaration, else dispatch branch, else dispatcher, else line 1."""
    rank = megakernel.rank(place.rank)
    uri = place.uri or rank.uri(place.artifact) or rank.uri(Artifact.KERNEL) or rank.uri(Artifact.TASK_GRAPH)
    if uri is None:
        uris = (other.uri(artifact) for other in megakernel.ranks for artifact in Artifact)
        uri = next((other for other in uris if other), quote(megakernel.graph, safe="/"))
    return Location(
        uri=uri, line=place.line or _line(place, megakernel), column=place.column, text=place.text
    )


def _line(place: Place, megakernel: Megakernel) -> int:
    kernel = megakernel.rank(place.rank).kernel
    if kernel is None:
        return 1
    if place.tensor is not None and place.tensor in kernel.declarations:
        return kernel.declarations[place.tensor].line
    if kernel.dispatcher is None:
        return 1
    branch = kernel.dispatcher.branches.get(place.operator) if place.operator else None
    return branch.line if branch else kernel.dispatcher.line


def _worst_first(finding: Finding) -> tuple[object, ...]:
    return (
        -finding.severity,
        finding.rule,
        finding.confidence,
        natural(finding.tensor or ""),
        finding.kind,
        finding.ranks,
    )
