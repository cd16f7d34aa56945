"""The result of a run, ready to be rendered: graphs, tensors, findings and what was not checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from mkcov_action.analyses.consumption import Consumption, Usage
from mkcov_action.config import Config
from mkcov_action.engine import Outcome, is_selected
from mkcov_action.finding import Artifact, Failure, Finding, NotChecked
from mkcov_action.kernel_source import Declaration, Origin
from mkcov_action.megakernel import Rank
from mkcov_action.rules import RULES, Context


class Status(StrEnum):
    """What became of a tensor, judged by used slots."""

    OK = "ok"
    MISSING_WIRING = "missing-wiring"
    UNCONSUMED = "unconsumed"
    UNINITIALISED = "uninitialised"
    PARTIAL = "partial"
    WRITE_ONLY = "write-only"
    DEAD = "dead"


class Verdict(StrEnum):
    """The gate in one word: pass for exit code 0, fail for 1, error for 2 and 3."""

    PASS = "pass"
    FAIL = "fail"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The figures of one rank: counts of declared tensors, `nullptr` never among them.

    `read` and `written` go by used slots; `dead` has no reference from any task at all;
    `model_tensors` are model and shuffled tensors; `dead_bytes` sums the known allocations of
    dead tensors, in bytes.
    """

    declared: int = 0
    read: int = 0
    written: int = 0
    dead: int = 0
    model_tensors: int = 0
    model_tensors_consumed: int = 0
    dead_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RankReport:
    """One rank: its files (root-relative, None where missing) and its figures.

    `audited` is False where a half is missing or unreadable; the figures are then zero.
    """

    rank: int
    kernel: str | None
    task_graph: str | None
    tasks: int
    events: int
    coverage: Coverage
    audited: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphReport:
    """One graph; `world_size` is the kernel's literal, None if it has none."""

    graph: str
    world_size: int | None
    ranks: tuple[RankReport, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeRefs:
    """How often tasks of one type reference a tensor in one rank."""

    task_type: int
    name: str
    refs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRefs:
    """A tensor's counts in one rank, given where ranks differ."""

    rank: int
    input_refs: int
    output_refs: int
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorReport:
    """One declared tensor of one graph. Counts are the seed's: every task input or output of that
    name, in the lowest rank that declares it; `by_rank` is empty unless the ranks differ.
    """

    graph: str
    name: str
    origin: str
    bytes: int | None
    ranks: tuple[int, ...]
    input_refs: int
    output_refs: int
    consumers: tuple[TypeRefs, ...]
    producers: tuple[TypeRefs, ...]
    critical: bool
    status: Status
    by_rank: tuple[RankRefs, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CriticalName:
    """A critical name without wildcards that a graph does not declare (`[not-declared]`)."""

    graph: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything one run says. Findings are ordered worst first; reporters only print.

    `deselected` are the ids of the rules that the user switched off.
    """

    verdict: Verdict
    exit_code: int
    fail_on: str
    graphs: tuple[GraphReport, ...]
    tensors: tuple[TensorReport, ...]
    not_declared: tuple[CriticalName, ...]
    findings: tuple[Finding, ...]
    not_checked: tuple[NotChecked, ...]
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
    deselected: tuple[str, ...] = ()

    @property
    def audited(self) -> bool:
        """Whether any rank could be audited; else a pass proves nothing."""
        return any(rank.audited for graph in self.graphs for rank in graph.ranks)

    @property
    def replaces_alerts(self) -> bool:
        """Whether code scanning may take this run's findings for all there are.

        It closes every alert that an upload does not repeat, so a run that audited nothing, or came
        to no verdict, must upload none.
        """
        return self.audited and self.exit_code != _NO_VERDICT

    def with_failure(self, failure: Failure) -> Report:
        """The same report with one more reason why there is no verdict."""
        failures = (*self.failures, failure)
        code = max(self.exit_code, _code_of(failures))
        return replace(self, verdict=Verdict.ERROR, exit_code=code, failures=failures)

    def counts(self) -> Mapping[str, int]:
        """The number of findings by severity label: error, warning, note."""
        labels = [finding.severity.label for finding in self.findings]
        return {label: labels.count(label) for label in ("error", "warning", "note")}


def build_report(
    config: Config,
    audited: Sequence[tuple[Context, Outcome]],
    failures: Sequence[Failure] = (),
    warnings: tuple[str, ...] = (),
) -> Report:
    """Sums up what was found; the verdict is the worst of all graphs."""
    findings = [finding for _, outcome in audited for finding in outcome.findings]
    findings.sort(key=lambda finding: -finding.severity)  # stable: each graph's own order stays
    everything = (*failures, *(failure for _, outcome in audited for failure in outcome.failures))
    exit_code = _exit_code(config, findings, everything)
    return Report(
        verdict={0: Verdict.PASS, 1: Verdict.FAIL}.get(exit_code, Verdict.ERROR),
        exit_code=exit_code,
        fail_on=config.fail_on.label if config.fail_on else "never",
        graphs=tuple(_graph_report(context) for context, _ in audited),
        tensors=tuple(tensor for context, _ in audited for tensor in _tensor_reports(context)),
        not_declared=tuple(name for context, _ in audited for name in _not_declared(context)),
        findings=tuple(findings),
        not_checked=tuple(item for _, outcome in audited for item in outcome.not_checked),
        failures=everything,
        warnings=warnings,
        deselected=tuple(rule.id for rule in RULES if not is_selected(rule, config)),
    )


_NO_VERDICT = 2
_INTERNAL = 3


def _code_of(failures: Sequence[Failure]) -> int:
    return _INTERNAL if any(failure.internal for failure in failures) else _NO_VERDICT


def _exit_code(config: Config, findings: Sequence[Finding], failures: Sequence[Failure]) -> int:
    if failures:
        return _code_of(failures)
    return int(config.fail_on is not None and any(f.severity >= config.fail_on for f in findings))


def _graph_report(context: Context) -> GraphReport:
    megakernel = context.megakernel
    ranks = tuple(_rank_report(context, rank) for rank in megakernel.ranks)
    return GraphReport(graph=megakernel.graph, world_size=megakernel.world_size, ranks=ranks)


def _rank_report(context: Context, rank: Rank) -> RankReport:
    graph = rank.task_graph
    return RankReport(
        rank=rank.number,
        kernel=rank.uri(Artifact.KERNEL),
        task_graph=rank.uri(Artifact.TASK_GRAPH),
        tasks=len(graph) if graph else 0,
        events=len(graph.events) if graph else 0,
        coverage=_coverage(context.consumption(rank), rank) if rank.audited else Coverage(),
        audited=rank.audited,
    )


def _coverage(consumption: Consumption, rank: Rank) -> Coverage:
    declarations = rank.declarations
    dead = [name for name in declarations if not consumption.is_referenced(name)]
    attached = [name for name, item in declarations.items() if item.origin in (Origin.MODEL, Origin.SHUFFLED)]
    return Coverage(
        declared=len(declarations),
        read=sum(map(consumption.is_read, declarations)),
        written=sum(map(consumption.is_written, declarations)),
        dead=len(dead),
        model_tensors=len(attached),
        model_tensors_consumed=sum(map(consumption.is_touched, attached)),
        dead_bytes=sum(declarations[name].bytes or 0 for name in dead),
    )


def _not_declared(context: Context) -> list[CriticalName]:
    """The critical names without wildcards that no rank declares."""
    declared = {name.lower() for rank in context.ranks for name in rank.declarations}
    graph = context.megakernel.graph
    return [
        CriticalName(graph=graph, name=pattern)
        for pattern in context.config.critical
        if context.ranks and not set(pattern) & set("*?[") and pattern.lower() not in declared
    ]


def _tensor_reports(context: Context) -> list[TensorReport]:
    """Every declared tensor of a graph, in the order in which the lowest rank declares it."""
    names = dict.fromkeys(name for rank in context.ranks for name in rank.declarations)
    return [_tensor_report(context, name) for name in names]


def _tensor_report(context: Context, name: str) -> TensorReport:
    ranks = [rank for rank in context.ranks if name in rank.declarations]
    by_rank = [_rank_refs(context, rank, name) for rank in ranks]
    first = ranks[0]
    usage = context.consumption(first).of(name)
    declaration = first.declarations[name]
    differ = len({(refs.input_refs, refs.output_refs, refs.status) for refs in by_rank}) > 1
    return TensorReport(
        graph=context.megakernel.graph,
        name=name,
        origin=declaration.origin.value,
        bytes=declaration.bytes,
        ranks=tuple(rank.number for rank in ranks),
        input_refs=usage.input_refs,
        output_refs=usage.output_refs,
        consumers=_type_refs(first, usage.consumers),
        producers=_type_refs(first, usage.producers),
        critical=context.config.is_critical(name),
        status=min((refs.status for refs in by_rank), key=_WORST_FIRST.index),
        by_rank=tuple(by_rank) if differ else (),
    )


_WORST_FIRST = (
    Status.MISSING_WIRING,
    Status.UNCONSUMED,
    Status.UNINITIALISED,
    Status.PARTIAL,
    Status.WRITE_ONLY,
    Status.DEAD,
    Status.OK,
)


def _rank_refs(context: Context, rank: Rank, name: str) -> RankRefs:
    consumption = context.consumption(rank)
    usage: Usage = consumption.of(name)
    critical = context.config.is_critical(name)
    status = status_of(rank.declarations[name], consumption, critical=critical)
    return RankRefs(
        rank=rank.number, input_refs=usage.input_refs, output_refs=usage.output_refs, status=status
    )


def status_of(declaration: Declaration, consumption: Consumption, *, critical: bool) -> Status:
    """What became of a tensor in one rank, by used slots."""
    name = declaration.name
    read, written = consumption.is_read(name), consumption.is_written(name)
    if critical and not read:
        return Status.MISSING_WIRING
    if declaration.origin in (Origin.MODEL, Origin.SHUFFLED) and not (read or written):
        return Status.UNCONSUMED
    if not (read or written):
        return Status.DEAD
    if not read:
        return Status.WRITE_ONLY
    if written or declaration.origin not in (Origin.SCRATCH, Origin.SYMMETRIC):
        return Status.OK
    return Status.OK if consumption.may_be_written(name) else Status.UNINITIALISED


def _type_refs(rank: Rank, refs: Mapping[int, int]) -> tuple[TypeRefs, ...]:
    return tuple(
        TypeRefs(task_type=number, name=rank.type_name(number), refs=refs[number]) for number in sorted(refs)
    )
