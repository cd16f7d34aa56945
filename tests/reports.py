"""Reports made by hand, and a strategy for any report, hostile text included."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from mkcov_action.finding import (
    Confidence,
    Failure,
    Finding,
    Location,
    NotChecked,
    Operator,
    Severity,
    fingerprint_of,
)
from mkcov_action.kernel_source import Origin
from mkcov_action.report import (
    Coverage,
    CriticalName,
    GraphReport,
    RankRefs,
    RankReport,
    Report,
    Status,
    TensorReport,
    TypeRefs,
    Verdict,
)

GATHER = "TASK_MLA_KV_GATHER_SM100"


def tensor(
    name: str,
    status: Status = Status.OK,
    *,
    graph: str = "gen",
    origin: str = "model",
    size: int | None = None,
    ranks: tuple[int, ...] = (0,),
    refs: tuple[int, int] = (0, 0),
    consumers: tuple[tuple[int, str], ...] = (),
    critical: bool = False,
    by_rank: tuple[RankRefs, ...] = (),
) -> TensorReport:
    """A tensor; `refs` are its input and output references."""
    return TensorReport(
        graph=graph,
        name=name,
        origin=origin,
        bytes=size,
        ranks=ranks,
        input_refs=refs[0],
        output_refs=refs[1],
        consumers=tuple(TypeRefs(task_type=number, name=title, refs=1) for number, title in consumers),
        producers=(),
        critical=critical,
        status=status,
        by_rank=by_rank,
    )


def rank(number: int = 0, *, audited: bool = True, coverage: Coverage | None = None) -> RankReport:
    """A rank with both files and, if audited, the figures of a small DeepSeek graph."""
    figures = Coverage(
        declared=91,
        read=84,
        written=36,
        dead=6,
        model_tensors=47,
        model_tensors_consumed=45,
        dead_bytes=1_258_291,
    )
    return RankReport(
        rank=number,
        kernel=f"gen/kernel_{number}.cu",
        task_graph=f"gen/task_graph_{number}.json",
        tasks=7242 if audited else 0,
        events=95 if audited else 0,
        coverage=coverage or (figures if audited else Coverage()),
        audited=audited,
    )


def graph(*ranks: RankReport, name: str = "gen", world_size: int | None = 1) -> GraphReport:
    return GraphReport(graph=name, world_size=world_size, ranks=ranks or (rank(),))


def finding(
    rule: str = "MK101",
    name: str = "missing-wiring",
    severity: Severity = Severity.ERROR,
    message: str = "rope_cos is attached to the model, and no task reads it",
    tensor_name: str | None = "rope_cos",
    **changes: object,
) -> Finding:
    """A finding with its fingerprint; `changes` are further fields of Finding."""
    fields: dict[str, object] = {
        "graph": "gen",
        "ranks": (0,),
        "consequence": "attention runs position-blind: fluent text that repeats and makes no sense",
        "fix": "pass rope_cos to the layer that applies rotary embedding, then generate again",
        "location": Location(uri="gen/kernel_0.cu", line=110),
        **changes,
    }
    made = Finding(
        rule=rule,
        name=name,
        severity=severity,
        message=message,
        tensor=tensor_name,
        **fields,  # type: ignore[arg-type]
    )
    return Finding(
        **{each: getattr(made, each) for each in made.__dataclass_fields__ if each != "fingerprint"},
        fingerprint=fingerprint_of(made),
    )


def report(verdict: Verdict = Verdict.PASS, **changes: object) -> Report:
    """A report on one graph; `changes` are further fields of Report."""
    exit_codes = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.ERROR: 2}
    fields: dict[str, object] = {
        "exit_code": exit_codes[verdict],
        "fail_on": "error",
        "graphs": (graph(),),
        "tensors": (),
        "not_declared": (),
        "findings": (),
        "not_checked": (),
        **changes,
    }
    return Report(verdict=verdict, **fields)  # type: ignore[arg-type]


# --- any report -----------------------------------------------------------------------------------

# What is dangerous somewhere: runner commands, control codes, bidi and zero-width characters, a lone
# surrogate, markup of rich and of HTML, quotes, backslashes, and a name far over any limit.
_FRAGMENTS = (
    "::error::",
    "  ::warning file=x::",
    "##[error]",
    "###[group]",
    "\x1b[31m",
    "\x9b2J",
    "\r\n",
    "\t",
    "\x00",
    "\x7f",
    "\x85",
    "\u2028",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u061c",
    "\u200b",
    "\ufeff",
    "\u3164",
    "\ud800",
    "\ue000",
    "\U000e0041",
    "\uffff",
    "[bold]",
    "[/]",
    "<img src=x>",
    '"',
    "\\",
    "\\x1b",
    "a" * 10_000,
)
texts = st.one_of(
    st.text(st.characters()),
    st.lists(st.one_of(st.sampled_from(_FRAGMENTS), st.text(st.characters(), max_size=3)), max_size=5).map(
        "".join
    ),
)

_counts = st.integers(0, 2**40)
_ranks = st.lists(st.integers(0, 9), unique=True, max_size=4).map(lambda each: tuple(sorted(each)))
_graph_names = st.one_of(st.just("gen"), texts)


_Item = TypeVar("_Item")


def _tuples(items: st.SearchStrategy[_Item], limit: int = 3) -> st.SearchStrategy[tuple[_Item, ...]]:
    return st.lists(items, max_size=limit).map(tuple)


_locations = st.builds(
    Location,
    uri=texts,
    line=st.integers(1, 2**31),
    column=st.none() | st.integers(1, 2**31),
    text=texts,
)

_coverage = st.builds(
    Coverage,
    declared=_counts,
    read=_counts,
    written=_counts,
    dead=_counts,
    model_tensors=_counts,
    model_tensors_consumed=_counts,
    dead_bytes=_counts,
)

_rank_reports = st.builds(
    RankReport,
    rank=st.integers(0, 9),
    kernel=st.none() | texts,
    task_graph=st.none() | texts,
    tasks=_counts,
    events=_counts,
    coverage=_coverage,
    audited=st.booleans(),
)

_type_refs = st.builds(
    TypeRefs, task_type=st.integers(-(2**31), 2**31 - 1), name=texts, refs=st.integers(1, 2**40)
)

_rank_refs = st.builds(
    RankRefs,
    rank=st.integers(0, 9),
    input_refs=_counts,
    output_refs=_counts,
    status=st.sampled_from(Status),
)

_tensors = st.builds(
    TensorReport,
    graph=_graph_names,
    name=texts,
    origin=st.sampled_from(Origin).map(str),
    bytes=st.none() | _counts,
    ranks=_ranks,
    input_refs=_counts,
    output_refs=_counts,
    consumers=_tuples(_type_refs),
    producers=_tuples(_type_refs),
    critical=st.booleans(),
    status=st.sampled_from(Status),
    by_rank=_tuples(_rank_refs),
)

_rules = st.integers(0, 999).map(lambda number: f"MK{number:03}")

_findings = st.builds(
    finding,
    rule=_rules,
    name=st.from_regex(r"[a-z]{1,9}(-[a-z0-9]{1,9}){0,2}", fullmatch=True),
    severity=st.sampled_from(Severity),
    message=texts,
    tensor_name=st.none() | texts,
    graph=_graph_names,
    ranks=_ranks,
    consequence=st.sampled_from(["", "nothing good"]) | texts,
    fix=st.sampled_from(["", "mend it"]) | texts,
    operator=st.none() | st.builds(Operator, type_name=texts, variant=st.integers(0, 9)),
    confidence=st.sampled_from(Confidence),
    members=_tuples(texts, 9),
    location=st.none() | _locations,
    related=_tuples(_locations, 5),
)

reports = st.builds(
    Report,
    verdict=st.sampled_from(Verdict),
    exit_code=st.integers(0, 3),
    fail_on=st.sampled_from(["error", "warning", "note", "never"]),
    graphs=_tuples(
        st.builds(
            GraphReport,
            graph=_graph_names,
            world_size=st.none() | st.integers(0, 9),
            ranks=_tuples(_rank_reports),
        )
    ),
    tensors=_tuples(_tensors, 12),
    not_declared=_tuples(st.builds(CriticalName, graph=_graph_names, name=texts)),
    findings=_tuples(_findings),
    not_checked=_tuples(st.builds(NotChecked, rule=_rules, reason=texts, graph=_graph_names)),
    failures=_tuples(
        st.builds(Failure, message=texts, internal=st.booleans(), graph=_graph_names, detail=texts)
    ),
    warnings=_tuples(texts),
    deselected=_tuples(_rules),
)
"""Any report that an engine could hand over, in the ranges that the schema promises."""
