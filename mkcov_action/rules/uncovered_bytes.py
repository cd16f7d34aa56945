"""MK404: bytes of a buffer that an operator leaves out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from mkcov_action.analyses.operators import OperatorCall
from mkcov_action.analyses.uncovered import Lack, Uncovered
from mkcov_action.finding import Confidence, Severity, family_of
from mkcov_action.megakernel import Rank
from mkcov_action.rules._calls import members, named
from mkcov_action.rules._races import all_layers
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural

_CONSEQUENCES = {
    Lack.UNWRITTEN: "the reader computes with whatever the memory held before",
    Lack.STALE: "the reader computes with values of another layer or of the last step",
    Lack.UNREAD: "what was computed there never reaches the result",
}
_FIXES = {
    Lack.UNWRITTEN: "choose a grid that divides the tensor, so that the tiles of its writers cover all of it",
    Lack.STALE: "give the writer all the tiles that other calls of its type have",
    Lack.UNREAD: "choose a grid that divides the tensor, so that the tiles of its readers cover all of it",
}


@rule(id="MK404", name="uncovered-bytes", severity=Severity.WARNING, stage=Stage.MEMORY, since="0.1.0")
def uncovered_bytes(context: Context) -> Iterator[Result]:
    """Bytes of a buffer are read and not written, or left out by a grid that does not divide it.

    ## What it finds
    In scratch and symmetric memory: bytes that an operator reads through an exact slot and that no
    operator writes, or that the last one leaves out though another call of its type wrote them; bytes of
    the buffer that no task writes; bytes that the tiles of a reading grid leave out at its end. Several
    operators may fill a buffer together. Where kernels choose at run time what they write, where other
    ranks put tiles, or where a role is not known, the tensor is listed as not checked.

    ## Why it matters
    The generator rounds down: of 36,864 columns 136 tiles leave the last eight to nobody. They hold what
    was there before, every value looks plausible, and each kernel by itself is right.

    ## Example
    A linear layer's grid of 136 tiles writes 36,856 of 36,864 columns, and the next operator reads all.

    ## How to fix it
    Choose a grid that divides the tensor, or pad the tensor to a multiple of the grid.
    """
    for rank in context.ranks:
        report = context.uncovered(rank)
        for doubt in dict.fromkeys(report.undecided.values()):
            names = [name for name, why in report.undecided.items() if why is doubt]
            yield uncovered_bytes.not_checked(f"the bytes of {listed(names)}: {doubt}")
        calls = context.operators(rank).calls
        groups: defaultdict[tuple[str, Lack, str, str], list[Uncovered]] = defaultdict(list)
        for one in report.found:
            types = calls[one.reader].operator.type_name, calls[one.writer].operator.type_name
            groups[family_of(one.tensor), one.lack, *types].append(one)
        for found in groups.values():
            first = found[0]
            yield uncovered_bytes.finding(
                tensor=first.tensor,
                operator=_culprit(first, calls).operator,
                tasks=len(found),
                ranks=(rank.number,),
                kind=f"{first.lack} {calls[first.reader].operator.type_name}",
                confidence=Confidence.CERTAIN if any(one.certain for one in found) else Confidence.POSSIBLE,
                members=members([_culprit(one, calls) for one in found]) if len(found) > 1 else (),
                message=_message(rank, first, calls) + all_layers([_culprit(one, calls) for one in found]),
                consequence=_CONSEQUENCES[first.lack],
                fix=_FIXES[first.lack],
            )


def _culprit(found: Uncovered, calls: Sequence[OperatorCall]) -> OperatorCall:
    """The call whose tiles leave the bytes out."""
    return calls[found.reader if found.lack is Lack.UNREAD else found.writer]


def _message(rank: Rank, found: Uncovered, calls: Sequence[OperatorCall]) -> str:
    reader, writer = calls[found.reader], calls[found.writer]
    size = rank.declarations[found.tensor].bytes or 0
    start, stop = found.first
    which = f"{plural(found.total, 'byte')} of {found.tensor} ({size:,} in all), the first at {start:,} to {stop - 1:,}"
    if found.lack is Lack.UNREAD:
        return f"{named(writer)} writes {which}, and the tiles of {named(reader)}, which reads it, leave them out"
    if found.older is not None:
        older = calls[found.older]
        when = "in the step before" if found.older > found.reader else "before"
        return (
            f"{named(reader)} reads {which}, that {named(writer)} leaves out, the last to write it:"
            f" they are what {named(older)} wrote {when}"
        )
    reads = "reads" if found.certain else "may read"
    return f"{named(reader)} {reads} {which}, that no task writes: {named(writer)} leaves them out"
