"""MK204: metadata that the kernel does not see as the file says it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mkcov_action.finding import Operator, Severity
from mkcov_action.megakernel import Rank
from mkcov_action.rules._rule import Context, Result, Stage, rule
from mkcov_action.rules._wording import plural, verb


@rule(
    id="MK204",
    name="inconsistent-metadata",
    severity=Severity.ERROR,
    stage=Stage.DISPATCH,
    since="0.1.0",
)
def inconsistent_metadata(context: Context) -> Iterator[Result]:
    """A task's metadata fields contradict each other.

    ## What it finds
    `request_id`, `kv_idx`, `expert_offset` and `task_offset` share the same bytes of the descriptor, so
    every generator writes values that agree: `expert_offset` and `task_offset` are equal and hold
    `kv_idx` in their upper and `request_id` in their lower half. Checked for the fields that the
    file's generation has; tasks 0 and 1 carry none.

    ## Why it matters
    The loader assigns `task_offset` last, and the kernel sees that value only. Whatever the other
    fields say is lost: an edited `request_id` changes nothing, or the edit of `task_offset` changes
    the request.

    ## Example
    A script sets `expert_offset` to 3 and leaves `task_offset` at -65536: the kernel takes expert
    -65536.

    ## How to fix it
    Generate the file again, or change all four fields together.
    """
    for rank in context.ranks:
        broken: Counter[tuple[int, int]] = Counter()
        first: dict[tuple[int, int], int] = {}
        for task in _broken_tasks(rank):
            key = rank.graph.task_type[task], rank.graph.variant_id[task]
            broken[key] += 1
            first.setdefault(key, task)
        for (number, variant), tasks in broken.items():
            operator = Operator(rank.type_name(number), variant)
            task = first[number, variant]
            yield inconsistent_metadata.finding(
                operator=operator,
                tasks=tasks,
                ranks=(rank.number,),
                message=f"{plural(tasks, 'task')} of {operator} {verb(tasks)} metadata that contradicts itself"
                f" (task {task}: {_shown(rank, task)})",
                consequence="the kernel sees task_offset (or, in older files, expert_offset), not the other fields",
                fix="generate the file again, or change request_id, kv_idx, expert_offset and task_offset together",
            )


def _shown(rank: Rank, task: int) -> str:
    return ", ".join(
        f"{name} {column[task]}"
        for name, column in rank.graph.metadata.items()
        if name != "merge_task_offset"
    )


def _broken_tasks(rank: Rank) -> Iterator[int]:
    """The tasks whose fields disagree, in order; the first two carry literal -1."""
    columns = rank.graph.metadata
    words = [columns[name] for name in ("expert_offset", "task_offset") if name in columns]
    if not words:
        return
    last = words[-1]
    if len(words) == 2 and words[0] != last:
        unequal = {task for task, pair in enumerate(zip(*words, strict=True)) if pair[0] != pair[1]}
    else:
        unequal = set()
    if "request_id" in columns and "kv_idx" in columns:
        halves = zip(last, columns["kv_idx"], columns["request_id"], strict=True)
        unequal |= {
            task
            for task, (word, high, low) in enumerate(halves)
            if (word ^ (high << 16 | low & 0xFFFF)) & 0xFFFFFFFF
        }
    yield from sorted(unequal - {0, 1})
