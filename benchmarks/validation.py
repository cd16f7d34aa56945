"""Measures what it costs to hold a task graph to its schema, in one run, alternating.

    python -m benchmarks.validation [DIR] [--rounds N] [--tasks N]

Two figures. The first is the share of an audit of DIR (the largest real graph of the corpus beside
the checkout, else a built decoder) that checking takes: the audit's time, less that of the same audit
with bare decoders, without types' ranges, missing and doubled keys or text encoding. The second is
the time of jsonschema's iter_errors over a parsed document of the first N tasks (20,000) of the same
graph, against our own reading of its text from the first byte to the last column.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

import msgspec
from jsonschema import Draft202012Validator
from msgspec import UNSET, Raw, UnsetType

from benchmarks.audit_vs_seed import REAL, TASKS, built, ranks_of, unpacked
from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.schema import load
from mkcov_action.task_graph import decode, read_task_graph


class BareTask(msgspec.Struct, gc=False):
    """A task whose fields may be anything."""

    task_type: Any
    variant_id: Any
    inputs: Raw
    outputs: Raw
    trigger_event: Any
    dependent_event: Any
    request_id: Any | UnsetType = UNSET
    kv_idx: Any | UnsetType = UNSET
    expert_offset: Any | UnsetType = UNSET
    task_offset: Any | UnsetType = UNSET
    merge_task_offset: Any | UnsetType = UNSET


class BareTensor(msgspec.Struct, gc=False):
    """A tensor whose fields may be anything that can be hashed."""

    base_ptr: Any
    offset: Any
    data_type: Any
    dims: tuple[Any, ...]
    strides: tuple[Any, ...]


@contextmanager
def without_checks() -> Iterator[None]:
    """Reads task graphs without holding them to anything."""
    bare: dict[str, Any] = {
        "TASKS": msgspec.json.Decoder(list[BareTask]),
        "TENSORS": msgspec.json.Decoder(list[BareTensor] | None),
        "_check_utf8": lambda _: None,
    }
    with (
        mock.patch.multiple(decode, **bare),
        mock.patch.object(decode.Builder, "_check_keys", return_value=None),
    ):
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both figures and print them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.validation", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("directory", nargs="?", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side (default 3)")
    parser.add_argument(
        "--tasks", type=int, default=20_000, help="tasks of the second figure (default 20,000)"
    )
    options = parser.parse_args(arguments)
    real = options.directory or (REAL if REAL.is_dir() else None)
    directory = unpacked(real) if real else built(TASKS)
    share = share_of_validation(directory, options.rounds)
    print(f"validation takes {share:.2f} of an audit's time")
    ratio = jsonschema_ratio(directory, options.tasks, options.rounds)
    print(
        f"jsonschema's iter_errors takes {ratio:.0f} times as long as our reading of {options.tasks:,} tasks"
    )
    return 0


def share_of_validation(directory: Path, rounds: int) -> float:
    """The median share of an audit in one process that goes into checking."""
    config = Config(paths=(str(directory),), root=directory, workers=1)
    shares = []
    for _ in range(rounds):
        with without_checks():
            bare = seconds(lambda: audit(config))
        whole = seconds(lambda: audit(config))
        shares.append(max(0.0, 1 - bare / whole))
    return median(shares)


def jsonschema_ratio(directory: Path, tasks: int, rounds: int) -> float:
    """How many times as long iter_errors takes as our own reading, in the median."""
    _, task_graph = ranks_of(directory)[0]
    document = json.loads(task_graph.read_bytes())
    document["all_tasks"] = document["all_tasks"][:tasks]
    text = json.dumps(document, indent=2, sort_keys=True).encode()
    validator = Draft202012Validator(load("task_graph"))
    ratios = []
    for _ in range(rounds):
        ours = seconds(lambda: read_task_graph(lambda: io.BytesIO(text)))
        theirs = seconds(lambda: list(validator.iter_errors(document)))
        ratios.append(theirs / ours)
    return median(ratios)


def seconds(action: Any) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
