"""Runs: consecutive tasks that are alike. The generator writes an operator's tasks in a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from itertools import compress, count, pairwise
from operator import ne, or_


def runs_of(*columns: Sequence[int], first: int) -> list[range]:
    """The tasks from `first` on, cut wherever one of the columns changes. There must be a column."""
    tasks = len(columns[0])
    changes = [map(ne, column[first:], column[first + 1 :]) for column in columns]
    cuts = compress(count(first + 1), reduce(partial(map, or_), changes))
    return [range(*ends) for ends in pairwise([first, *cuts, tasks])] if first < tasks else []
