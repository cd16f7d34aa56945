"""What the device dispatcher does with each task: its branches, and the slots that their bodies name.

Knows the if/else chain of mirage src/kernel/runtime.cc, print_task_graph, and the ways in which the
bodies of src/kernel/task_register.cc have reached a task's operands since the first dispatcher.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from mkcov_action.cpp_text import INTEGER, LineCounter, integer
from mkcov_action.finding import Operator


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of the dispatcher: what the kernel of (type, variant) really touches.

    `inputs` and `outputs` are the slots that the body names; None where it uses them in a way
    that cannot be told (a computed index, the whole descriptor passed on): then all are used.
    `const_inputs` are input slots named only under casts to a pointer to const: proven unwritten.
    (A const TMA descriptor proves nothing: stores take it so, too.)
    `metadata` and `config` are the fields of task_metadata and runtime_config that it reads; where
    the metadata is passed on as a whole, all its fields.
    `tma` are the slots, as (`input` or `output`, index), that it takes by a TMA descriptor.
    `tokens` are slots, metadata fields and literals in the order of the text, such as
    `input:3`, `output:0`, `metadata:request_id`, `config:step`, `true`, `false`, `nullptr`.
    """

    operator: Operator
    line: int
    inputs: frozenset[int] | None
    outputs: frozenset[int] | None
    const_inputs: frozenset[int] = frozenset()
    metadata: frozenset[str] = frozenset()
    config: frozenset[str] = frozenset()
    tokens: tuple[str, ...] = ()
    tma: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """The dispatcher's branches in the order of the text; `line` is where it starts.

    `complete` is False where something else may run a task that no branch names (a dispatcher of
    an unknown form beside the known one, a final else, a file that is cut off), so that a missing
    branch proves nothing.
    """

    line: int
    branches: Mapping[Operator, Branch]
    complete: bool = True

    @property
    def type_names(self) -> tuple[str, ...]:
        """The distinct type names in the order in which they first appear."""
        return tuple(dict.fromkeys(operator.type_name for operator in self.branches))


_FUNCTION = re.compile(r"_execute_\w+\s*\([^;{}]{0,600}+\{")
_CONDITION = re.compile(
    rf"""
    if [\s(]+ task_desc \s* (?:->|\.) \s* task_type \s* == (?P<type> [^&|;{{}}]{{1,200}}+ ) &&
    [\s(]* task_desc \s* (?:->|\.) \s* variant_id \s* == \s* (?P<variant>{INTEGER}) [\s)]* \{{
    """,
    re.VERBOSE,
)
_TYPE = re.compile(
    rf"""
    \s* (?: (?: \w+ \s* :: \s* )* (?P<name> [A-Za-z_]\w* )
          | (?: static_cast \s* < [^<>]* > \s* \( | \( [^()]* \) | [\w:\s]+ \( )?
            \s* (?P<number> {INTEGER} )
        ) [\s)]*
    """,
    re.VERBOSE,
)
_BRACE = re.compile(r"[{}]")
_CUT = "\0"  # stands for a branch where the text around the branches is judged
_OTHER_FORM = re.compile(
    rf"""
      switch \s* \( [^;{{}}]{{0,200}}? \b task_type \b
    | task_desc \s* (?:->|\.) \s* task_type \b
    | {_CUT} \s* else \b (?! \s* {_CUT} )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Span:
    """Where a branch stands: from its `if` over its body's text; not `closed` if a brace is missing."""

    operator: Operator
    start: int
    body: int
    end: int
    closed: bool


def read_dispatcher(text: str, code: str) -> Dispatcher | None:
    """The dispatcher of a kernel, None where none is of the known form.

    `code` is `text` without comments and literals. As in an if/else chain the first of several
    branches for one (type, variant) counts.
    """
    spans = list(_spans(code))
    if not spans:
        return None
    functions = list(_FUNCTION.finditer(code, 0, spans[0].start))
    lines = LineCounter(text)
    line = lines.line_at(functions[-1].start() if functions else spans[0].start)
    branches: dict[Operator, Branch] = {}
    for span in spans:
        branch = _read_branch(span, lines.line_at(span.start), code[span.body : span.end])
        branches.setdefault(span.operator, branch)
    complete = _is_complete(code, spans) and (not functions or _is_closed(code, spans[-1]))
    return Dispatcher(line, branches, complete)


def _spans(code: str) -> Iterator[_Span]:
    heads = [
        (condition, operator)
        for condition in _CONDITION.finditer(code)
        if (operator := _operator(condition)) is not None
    ]
    # The next branch bounds this one, so that a missing brace costs one branch and not the rest.
    limits = [*(condition.start() for condition, _ in heads[1:]), len(code)]
    for (condition, operator), limit in zip(heads, limits, strict=False):
        end = _closing_brace(code, condition.end(), limit)
        closed = end is not None
        yield _Span(operator, condition.start(), condition.end(), limit if end is None else end, closed)


def _operator(condition: re.Match[str]) -> Operator | None:
    task_type = _TYPE.fullmatch(condition["type"])
    variant = integer(condition["variant"])
    if task_type is None or variant is None:
        return None
    return Operator(task_type["name"] or f"TYPE_{integer(task_type['number'])}", variant)


def _closing_brace(code: str, start: int, limit: int) -> int | None:
    depth = 1
    for brace in _BRACE.finditer(code, start, limit):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.start()
    return None


def _is_closed(code: str, last: _Span) -> bool:
    """Whether the function ends after its last branch: else the file is cut off, with branches lost."""
    return _closing_brace(code, last.end + last.closed, len(code)) is not None


def _is_complete(code: str, spans: Sequence[_Span]) -> bool:
    """Whether nothing outside the branches looks as if it ran tasks."""
    ends = [0, *(span.end + span.closed for span in spans)]
    starts = [*(span.start for span in spans), len(code)]
    pieces = (code[end:start] for end, start in zip(ends, starts, strict=True))
    around = _CUT.join(piece.replace(_CUT, " ") for piece in pieces)
    if not all(span.closed for span in spans) or _OTHER_FORM.search(around):
        return False
    places = [function.end() for function in _FUNCTION.finditer(around)]
    return all(_CUT in around[start:end] for start, end in pairwise([*places, len(around)]))


# `inputs` and `outputs` with `.base_ptr` or `.tma_desc_ptrs[k]`: generators before October 2025.
_SIDES = {
    "input_ptrs": "input",
    "input_tma_desc_ptrs": "input",
    "inputs": "input",
    "output_ptrs": "output",
    "output_tma_desc_ptrs": "output",
    "outputs": "output",
}
_METADATA = ("request_id", "kv_idx", "expert_offset", "task_offset", "merge_task_offset")

_MENTION = re.compile(
    r"""
      (?: (?:static|reinterpret)_cast \s* < (?P<cast> [^;(){}]{0,400} ) > \s* \( \s*
        | \( (?P<c_cast> [^;(){}]{0,400}+ ) \) \s* \(? \s* )?
      \b (?P<task> task_desc ) \b (?: \s* (?:->|\.) \s* (?P<field> [A-Za-z_]\w* ) )?
    | \b runtime_config \s* (?:->|\.) \s* (?P<config> [A-Za-z_]\w* )
    | \b (?P<literal> true | false | nullptr ) \b
    """,
    re.VERBOSE,
)
_INDEX = re.compile(rf"\s*\[\s*({INTEGER})\s*\]")
_MEMBER = re.compile(r"\s*\.\s*([A-Za-z_]\w*)")
_POINTER_TO_CONST = re.compile(
    r"\s*(?:const\b[^*&]*|[^*&]*\bconst)\s*\*\s*(?:(?:const|__restrict__|__restrict|restrict)\s*)*"
)


class _Body:
    """What one branch's body mentions."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._drops_const = "const_cast" in text
        self._slots: dict[str, set[int]] = {"input": set(), "output": set()}
        self._unclear: set[str] = set()
        self._writable: set[int] = set()
        self._metadata: set[str] = set()
        self._config: set[str] = set()
        self._tokens: list[str] = []
        self._tma: set[tuple[str, int]] = set()
        for mention in _MENTION.finditer(text):
            match mention.lastgroup:
                case "literal":
                    self._tokens.append(mention["literal"])
                case "config":
                    self._config.add(mention["config"])
                    self._tokens.append(f"config:{mention['config']}")
                case "field":
                    self._read_field(mention)
                case _:  # the descriptor as a whole
                    self._lose_track()

    def branch(self, operator: Operator, line: int) -> Branch:
        inputs, outputs = (
            None if side in self._unclear else frozenset(self._slots[side]) for side in ("input", "output")
        )
        return Branch(
            operator,
            line,
            inputs,
            outputs,
            (inputs or frozenset()) - self._writable,
            frozenset(self._metadata),
            frozenset(self._config),
            tuple(self._tokens),
            frozenset(self._tma),
        )

    def _lose_track(self) -> None:
        self._unclear |= {"input", "output"}
        self._metadata.update(_METADATA)

    def _read_field(self, mention: re.Match[str]) -> None:
        field = mention["field"]
        if field in _SIDES:
            self._read_slot(mention, field, _SIDES[field])
        elif field == "task_metadata":
            member = _MEMBER.match(self._text, mention.end())
            self._read_metadata(member[1] if member else "raw_payload")
        elif field in _METADATA:  # members of the descriptor until November 2025
            self._read_metadata(field)
        elif "ptr" in field:
            self._lose_track()

    def _read_slot(self, mention: re.Match[str], field: str, side: str) -> None:
        index = _INDEX.match(self._text, mention.end())
        slot = integer(index[1]) if index else None
        if slot is None:
            self._unclear.add(side)
            return
        self._slots[side].add(slot)
        if "tma" in field or self._text.startswith(".tma", index.end() if index else 0):
            self._tma.add((side, slot))
        self._tokens.append(f"{side}:{slot}")
        if side == "input" and not (field == "input_ptrs" and self._is_const(mention)):
            self._writable.add(slot)

    def _read_metadata(self, member: str) -> None:
        self._metadata.update(_METADATA if member == "raw_payload" else [member])
        self._tokens.append(f"metadata:{member}")

    def _is_const(self, mention: re.Match[str]) -> bool:
        target = mention["cast"] or mention["c_cast"]
        if target is None or self._drops_const:
            return False
        before = mention.start() - 1
        while before >= 0 and self._text[before].isspace():
            before -= 1
        cast_again = before >= 0 and self._text[before] == ")"  # a C cast of the cast, without const
        return not cast_again and _POINTER_TO_CONST.fullmatch(target) is not None


def _read_branch(span: _Span, line: int, text: str) -> Branch:
    body = _Body(text)
    branch = body.branch(span.operator, line)
    if span.closed:
        return branch
    return replace(branch, inputs=None, outputs=None, const_inputs=frozenset())
