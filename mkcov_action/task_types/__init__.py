"""Task types by name: what each slot of a task is for, and the naming of a file's numbers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mkcov_action.cpp_text import integer, without_comments
from mkcov_action.task_types.roles import (
    DATA_TYPE_BYTES,
    DATA_TYPE_NAMES,
    PUTS,
    TASK_TYPE_NUMBERS,
    TASK_TYPES,
    Extent,
    OptionalUse,
    Slot,
    SlotUse,
    TaskType,
)

__all__ = [
    "DATA_TYPE_BYTES",
    "DATA_TYPE_NAMES",
    "PUTS",
    "TASK_TYPES",
    "TASK_TYPE_NUMBERS",
    "WORKER_LOOP",
    "WORKER_TYPES",
    "Absences",
    "Extent",
    "OptionalUse",
    "Slot",
    "SlotCounts",
    "SlotUse",
    "TaskType",
    "absences",
    "is_runtime_tensor",
    "name_task_types",
    "read_header",
]

# The fields of RuntimeConfig (runtime_header.h), the keys of meta_tensors (mpk/persistent_kernel.py)
# and the names under which the demos attach the same tensors.
_RUNTIME_TENSOR = re.compile(
    r"step|tokens|(?:all|input|output)_tokens?|num_new_tokens|new_token_nums|prompt_lengths?|request_ids"
    r"|qo_indptr(?:_buffer)?|paged_kv_(?:indptr|indices|last_page_len)(?:_buffer|_snapshot)?"
)


def is_runtime_tensor(name: str) -> bool:
    """Whether runtime_config carries the tensor of that name, so that tasks need not reference it."""
    return _RUNTIME_TENSOR.fullmatch(name) is not None


WORKER_TYPES: dict[int, str] = {number: TASK_TYPE_NUMBERS[number] for number in (0, 10)}
"""The types that the worker's own loop handles, in all versions (persistent_kernel.cuh, execute_worker)."""

WORKER_LOOP = frozenset(WORKER_TYPES.values())
"""Their names: no branch of the dispatcher has them."""

SlotCounts = Mapping[int, Collection[tuple[int, int]]]
"""Task type number -> the (inputs, outputs) counts that its tasks show."""


def name_task_types(
    slot_counts: SlotCounts,
    dispatched: Sequence[str] | None,
    header: Mapping[int, str] | None = None,
) -> dict[int, str]:
    """Names the task type numbers of one file.

    `dispatched` are the dispatcher's type names in order, None if its form is not known; `header`
    is a fork's enum, number -> name. A branch's place tells more than a number: the generator prints
    branches by ascending number (mirage src/kernel/runtime.cc, all_task_variants), whatever the
    version. `TYPE_<n>` where that and the table leave a doubt.
    """
    in_order = list(dict.fromkeys(dispatched or ()))
    certain = dict(_numbered(in_order)) | dict(header or {}) | WORKER_TYPES
    naming = _Naming(slot_counts, in_order, {n: certain[n] for n in slot_counts.keys() & certain.keys()})
    return naming.by_table() if dispatched is None else naming.by_order()


def _numbered(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Names that tell their number: so the dispatcher's reader spells integer literals."""
    for name in names:
        digits = name.removeprefix("TYPE_")[:9]
        if digits.isdecimal() and name == f"TYPE_{int(digits)}":
            yield int(digits), name


@dataclass(frozen=True, slots=True)
class Absences:
    """The task type numbers whose name no branch of the dispatcher has.

    Branches stand in the order of the numbers. So for the `certain` ones no branch can be meant: at
    their place stands none, or only such as want other slots. The others come with the names that
    stand at their place and that no number took: each may be another name for one of these types.
    """

    certain: frozenset[int]
    doubtful: tuple[tuple[tuple[int, ...], tuple[str, ...]], ...]


def absences(names: Mapping[int, str], slot_counts: SlotCounts, dispatched: Sequence[str]) -> Absences:
    """Which of the named numbers have no branch, as far as the order of the branches tells."""
    taken = set(names.values())
    naming = _Naming(slot_counts, dispatched, {})
    certain: set[int] = set()
    doubtful = []
    for numbers, between in naming.gaps(naming.anchors(names)):
        free = [name for name in between if name not in taken]
        absent = [number for number in numbers if names[number] not in dispatched]
        unclear = [number for number in absent if any(naming.fits(number, name) for name in free)]
        certain.update(set(absent).difference(unclear))
        if unclear:
            doubtful.append((tuple(unclear), tuple(free)))
    return Absences(frozenset(certain), tuple(doubtful))


class _Naming:
    """The numbers and the names of one file, both in order, and what is certain of them."""

    def __init__(self, slot_counts: SlotCounts, in_order: Sequence[str], certain: Mapping[int, str]) -> None:
        self._counts = slot_counts
        self._numbers = sorted(slot_counts)
        self._names = in_order
        self._certain = dict(certain)
        self._taken = {*in_order, *certain.values()}

    def by_table(self) -> dict[int, str]:
        return {number: self._certain.get(number) or self._from_table(number) for number in self._numbers}

    def by_order(self) -> dict[int, str]:
        names = dict(self._certain)
        gaps = list(self.gaps(self.anchors(self._certain)))
        if not all(
            len(numbers) == len(between) and self._all_fit(numbers, between) for numbers, between in gaps
        ):
            anchors = self.anchors(self._tabled() | self._certain)
            names |= {self._numbers[number]: self._names[name] for number, name in anchors}
            gaps = list(self.gaps(anchors))
        for numbers, between in gaps:
            names |= self._between(numbers, between)
        return names

    def _between(self, numbers: Sequence[int], names: Sequence[str]) -> dict[int, str]:
        """The numbers of a gap between anchors, given the names that stand in the same gap."""
        if len(numbers) == len(names):
            in_order = dict(zip(numbers, names, strict=True))
            if not any(self._is_better_known(number, name) for number, name in in_order.items()):
                return in_order
        elif names:
            return {number: f"TYPE_{number}" for number in numbers}
        return {number: self._from_table(number) for number in numbers}

    def _is_better_known(self, number: int, name: str) -> bool:
        """Whether the table explains a number's tasks and the name of its place does not."""
        return not self.fits(number, name) and self._from_table(number) in TASK_TYPES

    def fits(self, number: int, name: str) -> bool:
        role = TASK_TYPES.get(name)
        return role is None or role.fits(self._counts[number])

    def _all_fit(self, numbers: Sequence[int], names: Sequence[str]) -> bool:
        return all(map(self.fits, numbers, names))

    def _from_table(self, number: int) -> str:
        """The table's name for a number that no branch names: its branch is missing, or a fork's."""
        name = TASK_TYPE_NUMBERS.get(number)
        if name is None or name in self._taken or not self.fits(number, name):
            return f"TYPE_{number}"
        return name

    def _tabled(self) -> dict[int, str]:
        certain = set(self._certain.values())
        return {
            number: TASK_TYPE_NUMBERS[number]
            for number in self._counts.keys() & TASK_TYPE_NUMBERS.keys()
            if TASK_TYPE_NUMBERS[number] not in certain and self.fits(number, TASK_TYPE_NUMBERS[number])
        }

    def anchors(self, named: Mapping[int, str]) -> list[tuple[int, int]]:
        """The places of numbers and their names in both orders, as far as they agree."""
        places = {name: place for place, name in enumerate(self._names)}
        pairs = [
            (index, places[named[number]])
            for index, number in enumerate(self._numbers)
            if named.get(number) in places
        ]
        return _longest_increasing(pairs)

    def gaps(self, anchors: Sequence[tuple[int, int]]) -> Iterator[tuple[list[int], list[str]]]:
        """What is open between two neighbouring anchors: numbers and names, each in order."""
        certain_names = set(self._certain.values())
        ends = (len(self._numbers), len(self._names))
        for (number, name), (next_number, next_name) in pairwise([(-1, -1), *anchors, ends]):
            yield (
                [n for n in self._numbers[number + 1 : next_number] if n not in self._certain],
                [n for n in self._names[name + 1 : next_name] if n not in certain_names],
            )


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose second members increase (patience sorting)."""
    piles: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        pile = bisect_left(piles, place)
        before.append(tops[pile - 1] if pile else -1)
        piles[pile : pile + 1] = [place]
        tops[pile : pile + 1] = [index]
    longest = []
    index = tops[-1] if tops else -1
    while index >= 0:
        longest.append(pairs[index])
        index = before[index]
    return longest[::-1]


_ENUM = re.compile(r"enum\s+(?:class\s+|struct\s+)?TaskType\b[^;{}]{0,200}\{(?P<body>[^{}]*)\}")
_DIRECTIVE = re.compile(r"^[^\S\n]*#.*$", re.MULTILINE)
_ENUMERATOR = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:=(?P<value>.*))?", re.DOTALL)


def read_header(text: str) -> dict[int, str]:
    """The TaskType enum of a runtime_header.h: number -> name; ValueError if there is none.

    Of several names for one number the first counts.
    """
    enum = _ENUM.search(without_comments(text))
    if enum is None:
        raise ValueError("no TaskType enum in the header")
    numbers: dict[str, int] = {}
    following = 0
    for entry in _DIRECTIVE.sub("", enum["body"]).split(","):
        if entry.strip():
            name, number = _enumerator(entry, numbers, following)
            numbers.setdefault(name, number)
            following = number + 1
    if not numbers:
        raise ValueError("the header's TaskType enum is empty")
    return {number: name for name, number in reversed(numbers.items())}


def _enumerator(entry: str, numbers: Mapping[str, int], following: int) -> tuple[str, int]:
    parts = _ENUMERATOR.fullmatch(entry)
    if parts is not None and parts["value"] is None:
        return parts["name"], following
    if parts is not None:
        terms = [numbers.get(term.strip(), integer(term)) for term in parts["value"].split("+")]
        known = [term for term in terms if term is not None]
        if len(known) == len(terms):
            return parts["name"], sum(known)
    raise ValueError(f"the header's TaskType enum: cannot read {entry.strip()[:60]!r}")
