"""MK504: memory that the signals between ranks do not order."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from mkcov_action.analyses.accesses import Accesses, accesses_of
from mkcov_action.analyses.happens_before import HappensBefore, NoOrder, members
from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.races import Race, RaceReport, race_report
from mkcov_action.analyses.unordered import Memory, memories_across
from mkcov_action.finding import Confidence, Severity, family_of
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import members as named_members
from mkcov_action.rules._races import all_layers, bytes_in, confidence
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


@rule(id="MK504", name="cross-rank-race", severity=Severity.ERROR, stage=Stage.RANKS, since="0.1.0")
def cross_rank_race(context: Context) -> Iterator[Result]:
    """Ranks signal each other, and what they read or overwrite is not ordered by these signals.

    ## What it finds
    The order of all ranks together, where a put orders only what the rank that it signals does
    next. Reads that wait for a peer's signal and not for their own rank's write are errors; puts
    into a buffer that an earlier operator of the peer may still read are warnings. Not checked unless
    all ranks were given.

    ## Why it matters
    Two GPUs are never equally fast. The faster one sends its next tile while the slower one still
    adds up the last: the sum is wrong, in some steps, on some days.

    ## Example
    The sum over the ranks waits for the peer's tile, and reads its own rank's tile, which may not
    be written yet.

    ## How to fix it
    Let the sum depend on its own rank's producer as well, and give consecutive all-reduces buffers in turn.
    """
    if not any(context.events(rank).tagged for rank in context.ranks):
        return
    size = context.megakernel.world_size
    if size is None or len(context.ranks) < size:
        yield cross_rank_race.not_checked("not all ranks were given: what orders them is not known")
        return
    order = context.all_order()
    if isinstance(order, NoOrder):
        yield cross_rank_race.not_checked("the order of the ranks' tasks is not known")
        return
    events = context.all_events()
    accesses = [
        accesses_of(rank, context.consumption(rank), context.operators(rank), events)
        for rank in context.ranks
    ]
    for rank, own in zip(context.ranks, accesses, strict=True):
        yield from _within(context, rank, own, order)
    yield from _overwritten(context, accesses, order)


def _within(context: Context, rank: Rank, accesses: Accesses, order: HappensBefore) -> Iterator[Result]:
    """What one rank does in its own memory, and only a signal that it sent itself would order."""
    alone = context.races(rank)
    known = set() if isinstance(alone, NoOrder) else {_key(race) for race in (*alone.reads, *alone.conflicts)}
    calls = context.operators(rank).calls
    report = race_report(accesses, calls, order)
    groups: defaultdict[tuple[str, str, str, str], list[Race]] = defaultdict(list)
    for race in (*report.reads, *report.conflicts):
        if _key(race) not in known:
            types = calls[race.earlier].operator.type_name, calls[race.later].operator.type_name
            groups[race.kind, family_of(race.tensor), *types].append(race)
    reads = set(report.reads)
    for races in groups.values():
        yield _finding(rank, races, calls, report, is_read=races[0] in reads)


def _key(race: Race) -> tuple[str, str, int, int]:
    return race.kind, race.tensor, race.earlier, race.later


def _finding(
    rank: Rank, races: list[Race], calls: Sequence[OperatorCall], report: RaceReport, *, is_read: bool
) -> Result:
    race = races[0]
    first, second = calls[race.earlier], calls[race.later]
    one, other = race.tasks
    pairs = sum(race.pairs for race in races)
    does = "reads" if is_read else "writes"
    following = ""
    if is_read and report.following:
        names = sorted(report.following, key=lambda name: -report.following[name])
        following = (
            f"; {plural(sum(report.following.values()), 'unordered pair')} of uses of {listed(names)} follow"
        )
    return cross_rank_race.finding(
        severity=Severity.ERROR if is_read else Severity.WARNING,
        tensor=race.tensor,
        operator=second.operator,
        tasks=pairs,
        ranks=(rank.number,),
        kind=f"{race.kind} {first.operator.type_name}",
        confidence=confidence(races),
        members=named_members([calls[race.later] for race in races]) if len(races) > 1 else (),
        message=f"{second.operator} {does} {race.tensor} ({bytes_in(rank, other, race.tensor)}) and waits for its peers,"
        f" not for {first.operator} of its own rank ({bytes_in(rank, one, race.tensor)})"
        f"{all_layers([calls[race.later] for race in races])}: {plural(pairs, 'pair')} of tiles{following}",
        consequence="the sum may take a tile of this rank that is not written yet",
        fix="let the operator depend on its own rank's producer as well as on the peers' signals",
    )


def _overwritten(context: Context, accesses: Sequence[Accesses], order: HappensBefore) -> Iterator[Result]:
    """Buffers into which a peer puts its next tile while the last one may still be read."""
    buffers = sorted(
        {
            name
            for own in accesses
            for name, tensor in own.tensors.items()
            if any(own.slot(access).remote for access in tensor.accesses)
        }
    )
    calls = {rank.number: context.operators(rank).calls for rank in context.ranks}
    for name in buffers:
        for memory in memories_across(accesses, name, order):
            found = _puts_over_reads(memory)
            if not found:
                continue
            (putting, writer, reader), _ = found.most_common(1)[0]
            put, read = calls[putting][writer], calls[memory.rank][reader]
            reading = [calls[memory.rank][reader] for _, _, reader in sorted(found)]
            yield cross_rank_race.finding(
                severity=Severity.WARNING,
                tensor=name,
                operator=read.operator,
                tasks=sum(found.values()),
                ranks=(memory.rank,),
                kind="put over read",
                confidence=Confidence.POSSIBLE,
                members=named_members(list(dict.fromkeys(reading))) if len(found) > 1 else (),
                message=f"{put.operator} of rank {putting} puts its next tile into {name} of rank {memory.rank} while"
                f" {read.operator} may still read the last one: {plural(sum(found.values()), 'pair')} of tasks"
                f" that no signal orders",
                consequence="the sum takes a tile of the next step, or half of it",
                fix="give consecutive all-reduces buffers in turn, or let the put wait for the reader's signal",
            )


def _puts_over_reads(memory: Memory) -> Counter[tuple[int, int, int]]:
    """How many pairs of tiles there are by putting rank, its call, and the reading call.

    A put with a larger task number than the read: the next use of the buffer. One with a smaller number
    is the read's own, or was overwritten by it.
    """
    found: Counter[tuple[int, int, int]] = Counter()
    for index in members(memory.remote):
        put = memory.entries[index]
        for other in members(memory.unordered(index) & memory.overlapping(index) & memory.reading):
            read = memory.entries[other]
            if read.rank == memory.rank and put.access.first > read.access.first:
                found[put.rank, put.access.call, read.access.call] += 1
    return found
