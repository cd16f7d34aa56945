"""Tensors in the text report: the critical ones, the write-only, the dead, and all on request.

The `[OK]`, `[MISSING-WIRING]`, `[not-declared]` and `INFO` lines keep the form of the auditor that
mkcov grew from, since people grep for them. With several graphs each line ends in ` graph=…`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mkcov_action.finding import family_of
from mkcov_action.report import GraphReport, RankRefs, Report, Status, TensorReport
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.styled import Line, Segment, line
from mkcov_action.reporters.wording import count, ranks_of, some

# A few names are read one by one; more are folded by family, and no line grows without end.
_UNFOLDED = 8
_FAMILIES = 16
_TYPES = 16

# A critical tensor that no task reads is missing its wiring, whatever else it is.
_UNREAD = frozenset({Status.MISSING_WIRING, Status.UNCONSUMED, Status.WRITE_ONLY, Status.DEAD})


def critical_lines(report: Report) -> Iterator[Line]:
    """One line per critical tensor, then the critical names that are not declared."""
    for graph in report.graphs:
        suffix = _suffix(report, graph.graph)
        audited = _audited(graph)
        critical = [tensor for tensor in _tensors(report, graph) if tensor.critical]
        for tensor in critical:
            yield (*_critical_line(tensor, audited), Segment(suffix))
        for missing in report.not_declared:
            if missing.graph == graph.graph:
                yield line("[", Segment("not-declared", "quiet"), "] ", name(missing.name), suffix)
        if audited and not critical:
            yield line(
                Segment("INFO", "strong"),
                " critical: no critical tensor is declared, so the critical gate had nothing to check"
                " (name yours with --critical); model tensors are still covered by MK102",
                suffix,
            )


def info_lines(report: Report) -> Iterator[Line]:
    """What is produced and never read, and what no task touches: a line each and graph."""
    for graph in report.graphs:
        for title, holds in (("write-only", _is_write_only), ("dead", _is_dead)):
            found = [(each, _ranks_where(holds, each)) for each in _tensors(report, graph)]
            found = [(tensor, ranks) for tensor, ranks in found if ranks]
            if found:
                names = _folded(found, _audited(graph))
                yield line(Segment("INFO", "strong"), f" {title}: {names}", _suffix(report, graph.graph))


def all_lines(report: Report) -> Iterator[Line]:
    """Every declared tensor, one line each."""
    for graph in report.graphs:
        audited = _audited(graph)
        for tensor in _tensors(report, graph):
            size_known = "" if tensor.bytes is None else f" bytes={tensor.bytes}"
            yield line(
                Segment("INFO", "strong"),
                f" tensor {name(tensor.name)}: status={tensor.status} origin={name(tensor.origin)}",
                f"{size_known} input_refs={tensor.input_refs} output_refs={tensor.output_refs}",
                _consumers(tensor),
                _rank_difference(tensor, audited),
                _suffix(report, graph.graph),
            )


def is_wired(tensor: TensorReport) -> bool:
    """Whether tasks read the tensor on every rank that declares it."""
    return tensor.status not in _UNREAD


def _critical_line(tensor: TensorReport, audited: Sequence[int]) -> Line:
    if tensor.status in _UNREAD:
        tag = Segment("MISSING-WIRING", "error")
        figures = _missing_figures(tensor)
    else:
        tag = Segment(tensor.status.upper(), "good" if tensor.status is Status.OK else "warning")
        figures = f"input_refs={tensor.input_refs}{_consumers(tensor)}"
    return line("[", tag, f"] {name(tensor.name)}: {figures}", _rank_difference(tensor, audited))


def _missing_figures(tensor: TensorReport) -> str:
    """The counts of a tensor that no task reads, in the first rank where that is so."""
    unread = [refs for refs in tensor.by_rank if refs.status in _UNREAD]
    counts: TensorReport | RankRefs = unread[0] if unread else tensor
    if counts.input_refs:
        return f"input_refs={counts.input_refs} (all in slots that the kernel never reads)"
    written = f" output_refs={counts.output_refs} (written, never read)" if counts.output_refs else ""
    return f"input_refs=0{written}"


def _consumers(tensor: TensorReport) -> str:
    """The reading task types by number, as a Python list, and by name."""
    if not tensor.consumers:
        return ""
    consumers = sorted(tensor.consumers, key=lambda refs: refs.task_type)
    numbers = some([str(refs.task_type) for refs in consumers], _TYPES)
    names = some([name(refs.name) for refs in consumers], _TYPES)
    return f" consumer_task_types=[{numbers}] ({names})"


def _rank_difference(tensor: TensorReport, audited: Sequence[int]) -> str:
    """In which ranks a tensor stands and how its counts differ; empty where all ranks agree."""
    if not tensor.by_rank:
        absent = set(audited) - set(tensor.ranks)
        return f"; declared on {ranks_of(tensor.ranks)} only" if absent and tensor.ranks else ""
    outputs_differ = len({refs.output_refs for refs in tensor.by_rank}) > 1
    groups: dict[str, list[int]] = {}
    for refs in tensor.by_rank:
        outputs = f" output_refs={refs.output_refs}" if outputs_differ else ""
        groups.setdefault(f"input_refs={refs.input_refs}{outputs} {refs.status}", []).append(refs.rank)
    told = ", ".join(f"{ranks_of(ranks)} {words}" for words, ranks in groups.items())
    return f"; ranks differ: {told}"


def _is_write_only(refs: TensorReport | RankRefs) -> bool:
    if refs.status is Status.WRITE_ONLY:
        return True
    return refs.output_refs > 0 and refs.input_refs == 0 and refs.status in _UNREAD  # a critical one


def _is_dead(refs: TensorReport | RankRefs) -> bool:
    # By references, not by status: a critical or model tensor without any is dead as well, so that
    # the list is what the figure of the rank counts.
    return not refs.input_refs and not refs.output_refs


def _ranks_where(holds: Callable[[TensorReport | RankRefs], bool], tensor: TensorReport) -> tuple[int, ...]:
    if tensor.by_rank:
        return tuple(refs.rank for refs in tensor.by_rank if holds(refs))
    return tensor.ranks if holds(tensor) else ()


def _folded(found: Sequence[tuple[TensorReport, tuple[int, ...]]], audited: Sequence[int]) -> str:
    """Names, or families with counts where there are many; ranks where it is not all of them."""
    fold = len(found) > _UNFOLDED
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for tensor, ranks in found:
        key = family_of(tensor.name) if fold else tensor.name
        groups.setdefault((key, ranks), []).append(tensor.name)
    items = []
    for (family, ranks), names in groups.items():
        notes = [f"{len(names):,}"] if len(names) > 1 else []
        if set(audited) - set(ranks):
            notes.append(ranks_of(ranks))
        shown = name(names[0] if len(names) == 1 else family)
        items.append(f"{shown} ({', '.join(notes)})" if notes else shown)
    total = f"; {count(len(found), 'tensor')} in all" if fold else ""
    return some(items, _FAMILIES) + total


def _tensors(report: Report, graph: GraphReport) -> list[TensorReport]:
    return [tensor for tensor in report.tensors if tensor.graph == graph.graph]


def _audited(graph: GraphReport) -> tuple[int, ...]:
    return tuple(rank.rank for rank in graph.ranks if rank.audited)


def _suffix(report: Report, graph: str) -> str:
    return f" graph={name(graph)}" if len(report.graphs) > 1 else ""
