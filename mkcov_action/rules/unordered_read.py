"""MK402: a read that does not wait for what it reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from mkcov_action.analyses.happens_before import NoOrder
from mkcov_action.analyses.races import Race
from mkcov_action.finding import Severity, family_of
from mkcov_action.rules._calls import members
from mkcov_action.rules._races import all_layers, bytes_in, confidence, events_between, no_order, undecided
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


@rule(id="MK402", name="unordered-read", severity=Severity.ERROR, stage=Stage.MEMORY, since="0.1.0")
def unordered_read(context: Context) -> Iterator[Result]:
    """A task reads bytes, and nothing makes it wait for the task that writes them.

    ## What it finds
    For every read the last writes of the same bytes before it, by task number: each must surely be
    over when the read starts. Order is order between events, as the task graph has it. Where kernels
    choose their part of a tile at run time, whole operators are compared, and the finding is possible.

    ## Why it matters
    On an idle GPU the writer mostly wins. Under load the reader takes what the buffer held before:
    the text is right in the morning and wrong in the evening, and no test of a single kernel shows it.

    ## Example
    The gather of the KV cache registers no outputs, so the generator draws no edge to the attention that
    reads what it gathers.

    ## How to fix it
    Let the reader depend on the writer: register the buffer as an output of the operator that writes it.
    """
    for rank in context.ranks:
        report = context.races(rank)
        if isinstance(report, NoOrder):
            yield unordered_read.not_checked(no_order(rank, report))
            continue
        yield from (unordered_read.not_checked(reason) for reason in undecided(rank, report))
        calls = context.operators(rank).calls
        groups: defaultdict[tuple[str, str, str], list[Race]] = defaultdict(list)
        for race in report.reads:
            types = calls[race.earlier].operator.type_name, calls[race.later].operator.type_name
            groups[family_of(race.tensor), *types].append(race)
        following = _following(report.following)
        for races in groups.values():
            race = races[0]
            writer, reader = calls[race.earlier], calls[race.later]
            mine, theirs = race.tasks
            yield unordered_read.finding(
                tensor=race.tensor,
                operator=writer.operator,
                tasks=sum(race.pairs for race in races),
                ranks=(rank.number,),
                kind=reader.operator.type_name,
                confidence=confidence(races),
                members=members([calls[race.later] for race in races]) if len(races) > 1 else (),
                message=f"{reader.operator} reads {race.tensor} ({bytes_in(rank, theirs, race.tensor)}) and does not wait"
                f" for {writer.operator}, which writes it ({bytes_in(rank, mine, race.tensor)})"
                f"{all_layers([calls[race.later] for race in races])}: {events_between(context, rank, mine, theirs)}"
                f"{following}",
                consequence="the kernel may read what the buffer held before: right on an idle GPU, wrong under load",
                fix="let the reader depend on the writer: register the buffer as an output of the writing operator",
            )


def _following(following: Mapping[str, int]) -> str:
    if not following:
        return ""
    names = sorted(following, key=lambda name: -following[name])
    return f"; the order would also settle {plural(sum(following.values()), 'unordered pair')} of uses of {listed(names)}"
