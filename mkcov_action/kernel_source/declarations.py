"""Which tensors a kernel declares, and where their memory comes from.

Knows the statements of mirage src/kernel/runtime.cc, print_task_graph, since its first JSON generation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from mkcov_action.cpp_text import INTEGER, LineCounter, integer, unescape


class Origin(StrEnum):
    """Where a declared tensor's memory comes from (mirage src/kernel/runtime.cc, IODesc types)."""

    MODEL = "model"  # a torch tensor that Python attached
    SHUFFLED = "shuffled"  # a fused weight, copied together at start
    SCRATCH = "scratch"  # cudaMalloc, uninitialised
    SYMMETRIC = "symmetric"  # nvshmem_malloc, one buffer on every rank
    UNKNOWN = "unknown"  # declared in a form that this reader does not know


@dataclass(frozen=True, slots=True)
class Copy:
    """One cudaMemcpy2D into a shuffled tensor; all figures in bytes but `height` (rows).

    `source` is the attached tensor's name, None where an older generator printed an address.
    """

    source: str | None
    offset: int
    pitch: int
    source_pitch: int
    width: int
    height: int
    line: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """One `all_tensors["name"] = …`; `line` is where its variable is declared, 1-based.

    (The line of the table entry itself if the variable's declaration is not recognised.)
    `bytes` is the allocation's size, None for a model tensor (the kernel does not say) and for a
    size that is no integer literal. `copies_known` is False when a statement of no known form
    between allocation and table entry names the variable: it may fill the memory.
    """

    name: str
    origin: Origin
    line: int
    bytes: int | None = None
    copies: tuple[Copy, ...] = ()
    copies_known: bool = True


_NO_TENSOR = "nullptr"  # the table's entry for an absent input
_MASK = "\ue000"

_ENTRY_OPENS = re.compile(r'\ball_tensors\s*\[\s*"')
_ENTRY_CLOSES = re.compile(r'(?<!\\)(?:\\\\)*(?P<quote>")\s*\]\s*=(?!=)\s*')
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NEXT_STATEMENT = re.compile(r"[;{}][^\S\n]*\n")
_END = re.compile(r"\s*;")


def mask_names(text: str) -> str:
    """The text with each tensor name that is no identifier as mask characters: same length.

    The generator prints names as they are, as string and as variable: a name with a quote, a slash
    or a newline would end literals and start comments. Its entry in the table tells where it stands.
    (What spans statements is no name: there, a quote is missing.)
    """
    pieces = []
    done = 0
    for start, end, value in _entry_names(text):
        name = text[start:end]
        mask = name if _IDENTIFIER.fullmatch(name) or _NEXT_STATEMENT.search(name) else _MASK * len(name)
        after = value + len(name)
        if text.startswith(name, value) and _END.match(text, after):
            # The variable is spelled as the name: mask it in its statements, too.
            pieces.append(text[done:after].replace(name, mask))
            done = after
        else:
            pieces += text[done:start], mask
            done = end
    return "".join([*pieces, text[done:]])


def _entry_names(text: str) -> Iterator[tuple[int, int, int]]:
    """Each name between the quotes of a table entry: its start, its end and where the value starts."""
    openings = [opening.end() for opening in _ENTRY_OPENS.finditer(text)]
    closing = None
    for start, limit in zip(openings, [*openings[1:], len(text) + 1], strict=False):
        if closing is None or closing.start() < start:
            closing = _ENTRY_CLOSES.search(text, start)
        if closing is None:
            return
        if closing.end() < limit:  # else this one is never closed
            yield start, closing.start("quote"), closing.end()


_NAME = r"[^;=*(){}&,!]++"  # an identifier, a mask, or nearly one: `layer.0-weight`
_ARGUMENT = r"[^;,(){}]*+"
_STATEMENT = re.compile(
    rf"""(?=[A-Za-z_{_MASK}]) (?:
      (?:char|void) \s* \* \s* (?P<declared>{_NAME}) (?=[;=])
    | cudaMalloc \s* \( \s* (?:\( \s* void \s* \* \s* \* \s* \) \s*)? & (?P<allocated>{_NAME}) ,
      (?P<bytes>{_ARGUMENT})
    | cudaMemcpy2D(?:Async)? \s* \(
      \s* reinterpret_cast \s* < \s* void \s* \* \s* > \s* \( (?P<target>{_NAME}) \) \s* ,
      (?P<pitch>{_ARGUMENT}) ,
      \s* (?: model_tensors \s* \. \s* at \s* \( \s* "(?P<source>[^"]*)" \s* \)
            | reinterpret_cast \s* < [^;(){{}}]*+ \( {_ARGUMENT} \) ) \s* ,
      (?P<source_pitch>{_ARGUMENT}) , (?P<width>{_ARGUMENT}) , (?P<height>{_ARGUMENT}) ,
    | assert \s* \( \s* num_gpus \s* ==? \s* (?P<world_size>{INTEGER}) \s* \)
    | assert \s* \( {_NAME} != \s* nullptr \s* \)
    | all_tensors \s* \[ \s* "(?P<entry>[^"]*)" \s* \] \s* =(?!=) (?P<value>[^;={{}}]*+) ;
    | (?P<word>[A-Za-z_{_MASK}][\w{_MASK}]*+)
    )""",
    re.VERBOSE,
)
_CAST = (
    r"(?: (?:static|reinterpret)_cast \s* < [^;(){}]{0,100}+ \( | \( \s* (?:char|void) \s* \* \s* \) ) \s*"
)
_VALUE = re.compile(
    rf"""
    \s* = \s* (?:
      (?P<model> (?:{_CAST})? model_tensors \b | {_CAST} \(? \s* {INTEGER} )
    | (?:{_CAST})? nvshmem_malloc \s* \( (?P<bytes>{_ARGUMENT})
    )
    """,
    re.VERBOSE,
)


@dataclass(slots=True)
class _Variable:
    line: int
    pointee: str = ""
    origin: Origin = Origin.UNKNOWN
    bytes: int | None = None
    copies: list[Copy] = field(default_factory=list)
    allocated: bool = False
    mentioned: bool = False

    def declares(self, name: str) -> Declaration:
        origin = Origin.SHUFFLED if self.copies else self.origin
        return Declaration(name, origin, self.line, self.bytes, tuple(self.copies), not self.mentioned)


def read_declarations(text: str, code: str) -> tuple[dict[str, Declaration], int | None]:
    """The declared tensors by name, and the world size literal.

    `code` is `text` with names masked, without comments and literals. Of several statements about
    a variable the last before the table entry counts; of several entries of a name the last, too.
    """
    reader = _Reader(text, code)
    reader.read()
    return reader.declarations, reader.world_size


class _Reader:
    """One pass over the statements; what is known of each variable so far."""

    def __init__(self, text: str, code: str) -> None:
        self._text = text
        self._code = code
        self._lines = LineCounter(text)
        self._variables: dict[str, _Variable] = {}
        self.declarations: dict[str, Declaration] = {}
        self.world_size: int | None = None

    def read(self) -> None:
        for statement in _STATEMENT.finditer(self._code):
            match statement.lastgroup:
                case "word":
                    self._mention(statement)
                case "declared":
                    self._declare(statement)
                case "bytes":
                    self._allocate(statement)
                case "height":
                    self._copy(statement)
                case "value":
                    self._enter(statement)
                case "world_size":
                    self.world_size = integer(statement["world_size"])

    def _spelled(self, statement: re.Match[str], group: str) -> str:
        start, end = statement.span(group)
        masked = _MASK in self._code[start:end]
        return (self._text if masked else self._code)[start:end].strip()

    def _line(self, statement: re.Match[str]) -> int:
        return self._lines.line_at(statement.start())

    def _declare(self, statement: re.Match[str]) -> None:
        variable = _Variable(self._line(statement), statement[0][:4])
        self._variables[self._spelled(statement, "declared")] = variable
        self._assign(variable, statement.end())

    def _assign(self, variable: _Variable, place: int) -> bool:
        value = _VALUE.match(self._code, place)
        if value is None:
            return False
        if value["model"] is not None:
            variable.origin = Origin.MODEL
        else:
            variable.origin = Origin.SYMMETRIC
            variable.bytes = integer(value["bytes"])
            variable.allocated = True
        return True

    def _allocate(self, statement: re.Match[str]) -> None:
        name = self._spelled(statement, "allocated")
        variable = self._variables.setdefault(name, _Variable(self._line(statement)))
        forms = {"char": Origin.SHUFFLED, "void": Origin.SCRATCH}
        variable.origin = forms.get(variable.pointee, Origin.UNKNOWN)
        variable.bytes = integer(statement["bytes"])
        variable.allocated = True
        variable.mentioned = False
        variable.copies.clear()

    def _copy(self, statement: re.Match[str]) -> None:
        target, _, offset = self._spelled(statement, "target").rpartition("+")
        variable = self._variables.get(target.strip())
        if variable is None:
            return
        keys = ("pitch", "source_pitch", "width", "height")
        figures = [integer(offset), *(integer(statement[key]) for key in keys)]
        known = [figure for figure in figures if figure is not None]
        if len(known) != len(figures):
            variable.mentioned = True
            return
        start, pitch, source_pitch, width, height = known
        source = self._literal(statement, "source")
        line = self._line(statement)
        variable.copies.append(Copy(source, start, pitch, source_pitch, width, height, line))

    def _literal(self, statement: re.Match[str], group: str) -> str | None:
        start, end = statement.span(group)
        return None if start < 0 else unescape(self._text[start:end])

    def _enter(self, statement: re.Match[str]) -> None:
        name = self._literal(statement, "entry")
        if name is None or name == _NO_TENSOR:
            return
        line = self._line(statement)
        variable = self._variables.get(self._spelled(statement, "value"), _Variable(line))
        self.declarations[name] = variable.declares(name)

    def _mention(self, statement: re.Match[str]) -> None:
        word = statement[0]
        variable = self._variables.get(self._spelled(statement, "word") if _MASK in word else word)
        if variable is not None and not self._assign(variable, statement.end()):
            variable.mentioned = variable.allocated
