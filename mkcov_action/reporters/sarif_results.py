"""Findings as SARIF results: one alert each, for a reader who never heard of mkcov."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from sarif_om import ArtifactLocation, Message, PhysicalLocation, Region, Result
from sarif_om import Location as SarifLocation

from mkcov_action.finding import Confidence, Finding, Location
from mkcov_action.reporters.clean import NAME_LIMIT, clean, name, naming
from mkcov_action.reporters.sarif_rules import INDEX
from mkcov_action.reporters.sarif_text import link, literal, sentence, uri
from mkcov_action.reporters.wording import count, place, ranks_of

ROOT_ID = "%SRCROOT%"
"""The base of every URI; the name that CodeQL gives the repository's root."""

_MOST_RELATED = 20  # code scanning shows 100, but each is a link in the message
_MEMBERS_SAID = 6
_MEMBERS_LISTED = 20

Identified = tuple[Finding, str]
"""A finding and its identity for code scanning."""


def identified(findings: Sequence[Finding]) -> list[Identified]:
    """Every finding with its identity, worst first, in an order that only depends on what they say.

    An identity has the form that code scanning's own has, `<hash>:<n>`: the n-th finding with that
    fingerprint. The count goes by what a regenerated kernel keeps, and covers findings that are not
    written, so that a result's identity does not depend on how many there are.
    """
    seen: Counter[str] = Counter()
    numbered: list[Identified] = []
    for finding in sorted(findings, key=_lasting):
        seen[finding.fingerprint] += 1
        numbered.append((finding, f"{finding.fingerprint}:{seen[finding.fingerprint]}"))
    return sorted(numbered, key=_worst_first)


def _lasting(finding: Finding) -> tuple[object, ...]:
    return (
        finding.fingerprint,
        -finding.severity,
        finding.confidence,
        finding.tensor or "",
        finding.members,
        finding.ranks,
        finding.message,
    )


def _worst_first(item: Identified) -> tuple[object, ...]:
    finding, identity = item
    location = _primary(finding)
    return -finding.severity, finding.rule, location.uri, location.line, identity


def result(item: Identified, ranks_of_graph: Mapping[str, int]) -> Result:
    """One result; `ranks_of_graph` gives the number of ranks of each graph."""
    finding, identity = item
    related = finding.related[:_MOST_RELATED]
    return Result(
        rule_id=finding.rule,
        rule_index=INDEX.get(finding.rule, -1),
        level=finding.severity.label,
        message=Message(text="\n".join(_paragraphs(finding, ranks_of_graph.get(finding.graph, 1)))),
        locations=[_location(_primary(finding))],
        related_locations=[_location(each, index) for index, each in enumerate(related, start=1)] or None,
        partial_fingerprints={"primaryLocationLineHash": identity},
        properties=_properties(finding),
    )


def _primary(finding: Finding) -> Location:
    """Where the alert stands; without a location code scanning would refuse the whole file."""
    return finding.location or Location(uri=finding.graph or ".", line=1)


def _location(location: Location, identifier: int = -1) -> SarifLocation:
    return SarifLocation(
        id=identifier,
        message=None if identifier < 0 else Message(text=literal(_what(location))),
        physical_location=PhysicalLocation(
            artifact_location=ArtifactLocation(uri=uri(location.uri), uri_base_id=ROOT_ID),
            region=Region(start_line=location.line, start_column=location.column),
        ),
    )


def _what(location: Location) -> str:
    return clean(location.text, NAME_LIMIT) if location.text else place(location)


def _paragraphs(finding: Finding, ranks: int) -> Iterator[str]:
    """The message: its first sentence is the alert's title and says what is wrong and what that does."""
    possible = "Possible: " if finding.confidence is Confidence.POSSIBLE else ""
    effect = f"; {naming(finding.consequence, finding.tensor)}" if finding.consequence else ""
    yield sentence(literal(f"{possible}{naming(finding.message, finding.tensor)}{effect}"))
    if finding.fix:
        yield sentence(literal(f"Fix: {naming(finding.fix, finding.tensor)}"))
    if ranks > 1 and finding.ranks:
        which = "all" if len(finding.ranks) == ranks else f"{ranks_of(finding.ranks)} of the"
        yield f"Found on {which} {ranks:,} ranks given."
    if not all(member in finding.message for member in finding.members):
        yield sentence(literal(f"{count(len(finding.members), 'member')}: {_some(finding.members)}"))
    if finding.related:
        yield _links(finding.related)


def _some(members: Sequence[str]) -> str:
    shown = [name(member) for member in members[:_MEMBERS_SAID]]
    more = len(members) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _links(related: Sequence[Location]) -> str:
    links = [link(_what(each), index) for index, each in enumerate(related[:_MOST_RELATED], start=1)]
    more = len(related) - len(links)
    rest = f" and {count(more, 'more place')}" if more else ""
    return f"See {', '.join(links)}{rest}."


def _properties(finding: Finding) -> dict[str, object]:
    """What a program may want to know of a finding without reading its message."""
    found: dict[str, object] = {
        "confidence": finding.confidence.value,
        "graph": clean(finding.graph, NAME_LIMIT),
        "ranks": list(finding.ranks),
    }
    if finding.tensor is not None:
        found["tensor"] = clean(finding.tensor, NAME_LIMIT)
    if finding.operator is not None:
        found["operator"] = clean(str(finding.operator), NAME_LIMIT)
    if finding.members:
        found["members"] = [clean(member, NAME_LIMIT) for member in finding.members[:_MEMBERS_LISTED]]
    if len(finding.members) > _MEMBERS_LISTED:
        found["membersLeftOut"] = len(finding.members) - _MEMBERS_LISTED
    return found
