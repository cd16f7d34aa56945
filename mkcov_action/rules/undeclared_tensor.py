"""MK104: a task names a tensor that the kernel does not declare."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.analyses.consumption import Usage
from mkcov_action.finding import Finding, Severity, family_of, natural
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import listed, plural


@rule(id="MK104", name="undeclared-tensor", severity=Severity.ERROR, stage=Stage.WIRING, since="0.1.0")
def undeclared_tensor(context: Context) -> Iterator[Result]:
    """A task names a tensor that the kernel does not declare.

    ## What it finds
    A `base_ptr` of the task graph that is no key of the kernel's `all_tensors`.

    ## Why it matters
    The loader looks every name up in that table and ends the process where it is missing. Mostly the
    two files come from two different runs of the generator.

    ## Example
    The builder was changed and only the kernel was generated again.

    ## How to fix it
    Generate both files in one run and keep them together.
    """
    for rank in context.ranks:
        usages = context.consumption(rank).usages
        undeclared = [name for name in usages if name not in rank.declarations]
        if len(undeclared) > len(usages) / 2 and len(set(map(family_of, undeclared))) > _FEW:
            yield _all(rank, undeclared, sum(_refs(usages[name]) for name in undeclared))
            continue
        for name in undeclared:
            usage = usages[name]
            slot = min(usage.slots)
            yield undeclared_tensor.finding(
                tensor=name,
                operator=slot.operator,
                ranks=(rank.number,),
                message=f"{_operands(_refs(usage))} {name or 'a tensor without a name'}, which the kernel does not declare (first: {slot})",
                consequence=_CONSEQUENCE,
                fix=_FIX,
            )


_FEW = 3  # families that may be slips of a builder; more, and most of all: the files do not belong together
_CONSEQUENCE = "the kernel's loader ends the process when it meets the name"
_FIX = "generate the kernel and the task graph in one run, and keep the two together"


def _all(rank: Rank, names: list[str], refs: int) -> Finding:
    first = sorted(names, key=natural)
    return undeclared_tensor.finding(
        ranks=(rank.number,),
        kind="most",
        members=tuple(first),
        message=f"{_operands(refs)} {plural(len(names), 'tensor')} that the kernel does not declare:"
        f" {listed(first)}: the two files are hardly of one run",
        consequence=_CONSEQUENCE,
        fix=_FIX,
    )


def _operands(refs: int) -> str:
    return f"{plural(refs, 'task operand')} {'names' if refs == 1 else 'name'}"


def _refs(usage: Usage) -> int:
    return usage.input_refs + usage.output_refs
