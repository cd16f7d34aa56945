"""Turns what the user typed into settings; what makes no sense is a usage error (exit 2)."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import click

from mkcov_action.config import DEFAULT_CRITICAL
from mkcov_action.finding import Severity
from mkcov_action.reporters.clean import NAME_LIMIT, clean
from mkcov_action.rules import RULES

FAIL_ON = (*(severity.label for severity in reversed(Severity)), "never")
_MOST_RANKS = 65_536


def split(values: Sequence[str]) -> list[str]:
    """The items of a repeatable, comma-separated option."""
    return [item.strip() for value in values for item in value.split(",") if item.strip()]


def ranks_of(value: str | None) -> tuple[int, ...] | None:
    """`0,2` or `0-7` or both, as sorted rank numbers; None where nothing was given."""
    if value is None:
        return None
    ranks: set[int] = set()
    for item in split([value]):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", item)
        if match is None:
            raise click.BadParameter(
                f"{clean(item, NAME_LIMIT)} is neither a rank such as 2 nor a range such as 0-7"
            )
        first, last = int(match.group(1)), int(match.group(2) or match.group(1))
        if last < first or last >= _MOST_RANKS:
            raise click.BadParameter(f"{clean(item, NAME_LIMIT)} is no range of ranks below {_MOST_RANKS:,}")
        ranks.update(range(first, last + 1))
    if not ranks:
        raise click.BadParameter("it names no rank")
    return tuple(sorted(ranks))


def critical_of(values: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The patterns in force, and those of them that the user gave. A leading `+` adds to the default."""
    if not values:
        return DEFAULT_CRITICAL, ()
    items = split(values)
    adds = items[:1] and items[0].startswith("+")
    given = tuple(dict.fromkeys(name for item in items if (name := item.removeprefix("+").strip())))
    if not given:  # nothing critical is a gate that checks nothing: `--ignore missing-wiring` says so openly
        raise click.BadParameter("it names no tensor")
    return ((*DEFAULT_CRITICAL, *given) if adds else given), given


def severity_of(label: str) -> Severity | None:
    """The lowest severity that fails the gate; None for `never`."""
    return None if label == "never" else Severity[label.upper()]


def rules_of(selectors: Iterable[str], *, dropping: bool) -> frozenset[str]:
    """The rule ids that selectors name: an id, a prefix of ids such as MK1, or a name.

    Dropping a rule that cannot be switched off is an error when it is named, and is left out
    when a prefix covers it.
    """
    chosen: set[str] = set()
    for selector in selectors:
        exact = [rule for rule in RULES if selector.lower() in (rule.id.lower(), rule.name)]
        matching = exact or [rule for rule in RULES if _is_prefix(selector, rule.id)]
        if not matching:
            raise click.BadParameter(unknown_rule(selector))
        if dropping and exact and exact[0].locked:
            raise click.BadParameter(
                f"{exact[0].id} {exact[0].name} cannot be switched off: it says that a file was not audited"
            )
        chosen.update(rule.id for rule in matching)
    return frozenset(chosen)


def _is_prefix(selector: str, rule_id: str) -> bool:
    return re.fullmatch(r"MK[0-9]*", selector.upper()) is not None and rule_id.startswith(selector.upper())


def unknown_rule(given: str) -> str:
    """Why a word names no rule, with what was perhaps meant."""
    shown = clean(given, NAME_LIMIT) or '""'
    group = [rule.id for rule in RULES if _is_prefix(given, rule.id)]
    if group:  # where one rule is asked for
        return f"{shown} names several rules: {', '.join(group)}"
    names = [name for rule in RULES for name in (rule.id, rule.name)]
    close = difflib.get_close_matches(given[:80], names, n=1)
    is_id = re.fullmatch(r"MK[0-9]*", given.upper()) is not None  # another number is no slip of a letter
    hint = f"; did you mean {close[0]}?" if close and not is_id else "; `mkcov rules` lists them"
    return f"{shown} is no rule's id, prefix or name{hint}"
