"""MK006: keys that no known generation of the format writes."""

from __future__ import annotations

from collections.abc import Iterator

from mkcov_action.finding import Artifact, Place, Severity
from mkcov_action.rules._rule import Context, Result, Stage, rule


@rule(id="MK006", name="unknown-key", severity=Severity.NOTE, stage=Stage.ARTIFACTS, since="0.1.0")
def unknown_key(context: Context) -> Iterator[Result]:
    """The task graph has a key that no known generation of the format writes.

    ## What it finds
    Keys of the document, of tasks, events or tensors beyond those that Mirage wrote until April 2026.
    Each is said once; everything else in the file is read as ever.

    ## Why it matters
    Newer generators and forks add keys, and nothing is wrong with that. But what such a key means was
    not checked, and a key that was only misspelt is one that the loader misses.

    ## Example
    `v2_worker_task_queues`, which newer generators write beside the task list.

    ## How to fix it
    Nothing, if your generator writes the key. Otherwise correct its spelling.
    """
    for rank in context.ranks:
        for key, line in rank.graph.unknown_keys.items():
            yield unknown_key.finding(
                message=f"the key {key} is not known: it is passed over",
                consequence="what it means to the kernel was not checked",
                fix="nothing, if your generator writes it; otherwise correct the spelling",
                ranks=(rank.number,),
                kind=key,
                place=Place(rank=rank.number, artifact=Artifact.TASK_GRAPH, line=line, text="here too"),
            )
