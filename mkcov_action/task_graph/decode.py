"""Decodes task graphs into columns: what the generator's layout lets us read fast.

A real file has 240 MB and 160,000 tasks, but only some ten thousand distinct operand lists. So the
text is read in pieces cut between tasks, each task's `inputs` and `outputs` stay raw text, and each
distinct text is decoded and checked once.
"""

from __future__ import annotations

import itertools
from array import array
from typing import Annotated, BinaryIO

import msgspec
from msgspec import UNSET, Meta, Raw, UnsetType
from msgspec.structs import astuple

from mkcov_action.json_text import repeated_keys
from mkcov_action.task_graph.model import METADATA_FIELDS, Events, Operand, TaskGraph

_Natural = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Id = Annotated[int, Meta(ge=0)]  # unsigned 64 bit: the column checks the upper end
_Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
_UInt32 = Annotated[int, Meta(ge=0, le=2**32 - 1)]
_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class _Task(msgspec.Struct, gc=False):
    task_type: _Int32
    variant_id: _UInt32
    inputs: Raw
    outputs: Raw
    trigger_event: _Id
    dependent_event: _Id
    request_id: _Int32 | UnsetType = UNSET
    kv_idx: _Int32 | UnsetType = UNSET
    expert_offset: _Int32 | UnsetType = UNSET
    task_offset: _Int32 | UnsetType = UNSET
    merge_task_offset: _Int32 | UnsetType = UNSET


class _Event(msgspec.Struct, gc=False):
    event_type: _Int32
    num_triggers: _Int32
    first_task_id: _Natural
    last_task_id: _Natural


class _Tensor(msgspec.Struct, gc=False):
    base_ptr: str
    offset: _Natural
    data_type: _Int32
    dims: tuple[_Natural, ...]
    strides: tuple[_Int64, ...]


class _Document(msgspec.Struct):
    all_tasks: list[_Task] | None
    all_events: list[_Event] | None
    first_tasks: list[_Natural] | None


TASK = msgspec.json.Decoder(_Task)
TASKS = msgspec.json.Decoder(list[_Task])
EVENT = msgspec.json.Decoder(_Event)
TENSORS = msgspec.json.Decoder(list[_Tensor] | None)
DOCUMENT = msgspec.json.Decoder(_Document)
OBJECTS = msgspec.json.Decoder(list[dict[str, Raw]])
ANY = msgspec.json.Decoder(Raw)
UNTYPED = msgspec.json.Decoder()
OBJECT = msgspec.json.Decoder(dict[str, Raw])

_TASK_KEYS = frozenset(_Task.__struct_fields__)
_EVENT_KEYS = frozenset(_Event.__struct_fields__)
_TENSOR_KEYS = frozenset(_Tensor.__struct_fields__)
DOCUMENT_KEYS = frozenset(_Document.__struct_fields__)


class NotSmooth(Exception):
    """The quick way does not apply: the layout is another, or something is wrong."""


_PIECE = 1 << 18  # bytes; a piece and its tasks then stay in the processor's cache
_HEAD_LIMIT = 1 << 26  # bytes before the tasks: the event table, at some 130 bytes an event
_TASKS_KEY = b'"all_tasks": ['
_BETWEEN_TASKS = b"\n    },\n    {"
_AFTER_TASKS = b"\n    }\n  ]"


def read_pieces(stream: BinaryIO) -> TaskGraph:
    """Reads the layout that the generator writes (two spaces a level), a piece at a time.

    Sound for any text: when every piece between two cuts decodes as a list of tasks and the rest,
    with an empty list in their place, as a document, then so does the whole.
    """
    builder = Builder()
    head, buffer = _read_head(stream)
    while True:
        cut = buffer.rfind(_BETWEEN_TASKS)
        end = buffer.find(_AFTER_TASKS, max(cut, 0))  # behind the last cut: a long search otherwise
        if end >= 0:
            builder.add(b"[" + buffer[: end + len(_AFTER_TASKS)])
            break
        if cut >= 0:
            builder.add(b"[" + buffer[: cut + 6] + b"]")
            buffer = buffer[cut + 7 :]
        more = stream.read(_PIECE)
        if not more or len(buffer) > _HEAD_LIMIT:
            raise NotSmooth
        buffer += more
    rest = head + b"]" + buffer[end + len(_AFTER_TASKS) :] + stream.read()
    try:
        document = DOCUMENT.decode(rest)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise NotSmooth from error
    if document.all_tasks != []:
        raise NotSmooth
    return builder.finish(document, rest)


def _read_head(stream: BinaryIO) -> tuple[bytes, bytes]:
    """Everything up to the first task, and what was read beyond it."""
    head = stream.read(_PIECE)
    while (at := head.find(_TASKS_KEY)) < 0:
        more = stream.read(len(head))  # doubling: a long head is copied few times
        if not more or len(head) > _HEAD_LIMIT:
            raise NotSmooth
        head += more
    at += len(_TASKS_KEY)
    return head[:at], head[at:]


class Builder:
    """Collects tasks piece by piece into columns."""

    def __init__(self) -> None:
        self._columns: dict[str, array[int]] = {
            "task_type": array("i"),
            "variant_id": array("I"),
            "trigger_event": array("Q"),
            "dependent_event": array("Q"),
        }
        self._metadata: dict[str, array[int]] | None = None
        self._lists: dict[bytes, int] = {}
        self._colons: list[int] = []
        self._inputs = array("I")
        self._outputs = array("I")
        self._unknown: set[str] = set()

    def add(self, text: bytes) -> None:
        """Takes the tasks of one JSON array; NotSmooth if anything about it needs a closer look."""
        try:
            tasks = TASKS.decode(text)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise NotSmooth from error
        first = len(self._inputs)
        try:
            for name, column in self._columns.items():
                column.extend([getattr(task, name) for task in tasks])
            for name, column in self._metadata_of(tasks).items():
                column.extend([getattr(task, name) for task in tasks])
        except (TypeError, OverflowError) as error:  # a field that some tasks lack; beyond 64 bits
            raise NotSmooth from error
        self._inputs.extend([self._intern(task.inputs) for task in tasks])
        self._outputs.extend([self._intern(task.outputs) for task in tasks])
        self._check_keys(text, first)

    def _metadata_of(self, tasks: list[_Task]) -> dict[str, array[int]]:
        if self._metadata is None:
            if not tasks:
                return {}
            names = [name for name in METADATA_FIELDS if getattr(tasks[-1], name) is not UNSET]
            self._metadata = {name: array("i") for name in names}
        for name in METADATA_FIELDS:
            if name not in self._metadata and any(getattr(task, name) is not UNSET for task in tasks):
                raise NotSmooth
        return self._metadata

    def _intern(self, raw: Raw) -> int:
        text = bytes(raw)
        index = self._lists.setdefault(text, len(self._colons))
        if index == len(self._colons):
            self._colons.append(text.count(b":"))
        return index

    def _check_keys(self, text: bytes, first: int) -> None:
        """Duplicate keys show as more colons than the known keys of so many tasks have.

        Names hold no colon as a rule; where one does, or where a newer generator writes more
        keys, the closer look clears the piece. `first` is the index of the piece's first task.
        """
        known = len(self._columns) + 2 + len(self._metadata or ())
        lists = itertools.chain(self._inputs[first:], self._outputs[first:])
        expected = known * (len(self._inputs) - first) + sum(map(self._colons.__getitem__, lists))
        if text.count(b":") == expected and text.isascii():
            return
        _check_utf8(text)
        for members in OBJECTS.decode(text):
            self._unknown.update(f"task.{key}" for key in members.keys() - _TASK_KEYS)
        if text.count(b":") != expected and text.count(b":") != colons_of_objects(text):
            raise NotSmooth

    def finish(self, document: _Document, rest: bytes) -> TaskGraph:
        """The graph; `rest` is the document's text without its tasks."""
        _check_utf8(rest)
        events = document.all_events or []
        keys = OBJECT.decode(rest).keys()
        if rest.count(b":") != 4 * len(events) + len(keys) and repeated_keys(rest):
            raise NotSmooth
        self._unknown.update(keys - DOCUMENT_KEYS)
        self._unknown.update(f"event.{key}" for key in _unknown_keys(rest, events))
        lists = _Operands()
        for text in self._lists:
            lists.add(text)
        self._unknown.update(f"tensor.{key}" for key in lists.unknown)
        return TaskGraph(
            operands=tuple(lists.operands),
            operand_lists=tuple(lists.lists),
            tensor_lists=tuple(lists.tensor_lists),
            tensor_list_of=lists.tensor_list_of,
            inputs=self._inputs,
            outputs=self._outputs,
            metadata=self._metadata or {},
            events=_event_columns(events),
            first_tasks=tuple(document.first_tasks or ()),
            unknown_keys=dict.fromkeys(sorted(self._unknown), 1),
            **self._columns,
        )


def _unknown_keys(rest: bytes, events: list[_Event]) -> set[str]:
    """The keys of events that no known generation writes."""
    if rest.count(b":") == 4 * len(events) + len(OBJECT.decode(rest)):
        return set()
    members = OBJECTS.decode(OBJECT.decode(rest)["all_events"]) if events else []
    return {key for event in members for key in event.keys() - _EVENT_KEYS}


class _Operands:
    """Decodes distinct operand lists; equal tensors and equal lists of names are kept once."""

    def __init__(self) -> None:
        self.operands: list[Operand] = []
        self.lists: list[tuple[int, ...]] = []
        self.tensor_lists: dict[tuple[str, ...], int] = {}
        self.tensor_list_of = array("I")
        self.unknown: set[str] = set()
        self._index: dict[tuple[object, ...], int] = {}

    def add(self, text: bytes) -> None:
        """Takes the text of a list or null; NotSmooth if it is no list of tensors."""
        try:
            tensors = TENSORS.decode(text) or ()
        except msgspec.MsgspecError as error:
            raise NotSmooth from error
        if text.count(b":") != len(_TENSOR_KEYS) * len(tensors):
            self._check_keys(text)
        self.lists.append(tuple([self._operand(astuple(tensor)) for tensor in tensors]))
        names = tuple([tensor.base_ptr for tensor in tensors])
        self.tensor_list_of.append(self.tensor_lists.setdefault(names, len(self.tensor_lists)))

    def _operand(self, fields: tuple[object, ...]) -> int:
        index = self._index.setdefault(fields, len(self.operands))
        if index == len(self.operands):
            self.operands.append(Operand(*fields))  # type: ignore[arg-type]  # the struct's own order
        return index

    def _check_keys(self, text: bytes) -> None:
        if repeated_keys(text):
            raise NotSmooth
        for members in OBJECTS.decode(text):
            self.unknown.update(members.keys() - _TENSOR_KEYS)


def colons_of_objects(text: bytes, *, deep: bool = False) -> int:
    """The colons that an array of objects holds when no object repeats a key.

    `deep` also counts those of the tensors in `inputs` and `outputs` by their keys; otherwise a
    member's value is taken as it stands.
    """
    return sum(
        1 + key.count(":") + _colons_of_value(key, bytes(value), deep=deep)
        for members in OBJECTS.decode(text)
        for key, value in members.items()
    )


def _colons_of_value(key: str, value: bytes, *, deep: bool) -> int:
    if deep and key in ("inputs", "outputs") and value.startswith(b"["):
        return colons_of_objects(value)
    return value.count(b":")


def _check_utf8(text: bytes) -> None:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotSmooth from error


def _event_columns(events: list[_Event]) -> Events:
    return Events(
        event_type=array("i", [event.event_type for event in events]),
        num_triggers=array("i", [event.num_triggers for event in events]),
        first_task_id=array("q", [event.first_task_id for event in events]),
        last_task_id=array("q", [event.last_task_id for event in events]),
    )
