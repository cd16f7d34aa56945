"""What GitHub's runner tells and takes: the only reader of GITHUB_*, INPUT_* and RUNNER_* variables.

The runner passes an input as INPUT_<NAME>, in upper case and with its dashes; what was not given is
the empty string. Outputs and the job summary are files that a step appends to (actions/runner
FileCommandManager.cs). Outside of a workflow all of them may be missing, which is no error.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from mkcov_action.artifacts import reason_of

LIMIT = 1_048_576
"""Bytes that the runner takes of a step's job summary, and of its outputs; of one more, it takes none."""

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def in_workflow() -> bool:
    """Whether a runner runs this process."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def workspace() -> Path | None:
    """The checkout of a running workflow, None outside of one."""
    value = os.environ.get("GITHUB_WORKSPACE")
    return Path(value) if value else None


# --- inputs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What `with:` says, without blanks around it; None or empty where nothing was given.

    A list (`ranks`, `critical`, `select`, `ignore`) may have its items on lines of their own; here
    they are separated by commas.
    """

    path: tuple[str, ...] = ()
    ranks: str | None = None
    critical: str | None = None
    fail_on: str | None = None
    select: str | None = None
    ignore: str | None = None
    one_graph: bool | None = None
    task_types: str | None = None
    sarif_file: str | None = None
    json_file: str | None = None
    summary: bool | None = None
    annotations: bool | None = None
    allow_empty: bool | None = None


def read_inputs() -> tuple[Inputs, tuple[str, ...]]:
    """The inputs, and a sentence for each that makes no sense and counts as not given."""
    problems: list[str] = []
    inputs = Inputs(
        path=tuple(_here(line) for line in _lines("path")),
        ranks=_list("ranks"),
        critical=_list("critical"),
        fail_on=_text("fail-on"),
        select=_list("select"),
        ignore=_list("ignore"),
        one_graph=_boolean("one-graph", problems),
        task_types=_path("task-types"),
        sarif_file=_path("sarif-file"),
        json_file=_path("json-file"),
        summary=_boolean("summary", problems),
        annotations=_boolean("annotations", problems),
        allow_empty=_boolean("allow-empty", problems),
    )
    return inputs, tuple(problems)


def _text(name: str) -> str | None:
    return os.environ.get(f"INPUT_{name.upper()}", "").strip() or None


def _lines(name: str) -> list[str]:
    lines = (line.strip() for line in (_text(name) or "").split("\n"))
    return [line for line in lines if line]


def _list(name: str) -> str | None:
    items = (item.strip() for line in _lines(name) for item in line.split(","))
    return ",".join(item for item in items if item) or None


def _boolean(name: str, problems: list[str]) -> bool | None:
    text = _text(name)
    if text is not None and text.lower() not in _BOOLEANS:
        problems.append(f"input {name} must be true or false, not: {text}")
    return None if text is None else _BOOLEANS.get(text.lower())


def _path(name: str) -> str | None:
    text = _text(name)
    return None if text is None else _here(text)


def _here(path: str) -> str:
    """A path that begins with the runner's own path of the checkout, as it is called in the container.

    The runner rewrites a variable that begins so (ContainerInfo.cs), hence only the first line of one.
    """
    parent, repository = os.environ.get("RUNNER_WORKSPACE"), os.environ.get("GITHUB_REPOSITORY")
    checkout = workspace()
    if not (parent and repository and checkout):
        return path
    there = f"{parent}/{repository.rpartition('/')[2]}"
    return f"{checkout}{path[len(there) :]}" if f"{path}/".startswith(f"{there}/") else path


# --- outputs, summary and log ---------------------------------------------------------------------


def write_outputs(outputs: Mapping[str, str]) -> str | None:
    """Appends the step's outputs; returns why that failed, None if it did not or nobody asks for them."""
    text = "".join(_assignment(name, value) for name, value in outputs.items())
    data = text.encode("utf-8", "surrogateescape")
    if len(data) > LIMIT:
        return f"a step's outputs can have {LIMIT:,} bytes, not {len(data):,}"
    return _append("GITHUB_OUTPUT", data)


def _assignment(name: str, value: str) -> str:
    """`name<<delimiter`, the value and the delimiter: the form in which a value may hold anything."""
    delimiter = f"mkcov_{uuid4().hex}"
    while delimiter in value:
        delimiter = f"mkcov_{uuid4().hex}"
    return f"{name}<<{delimiter}\n{value}\n{delimiter}\n"


def summary_room() -> int | None:
    """Bytes that the step's job summary still takes; None if there is no job summary."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    return max(0, LIMIT - _size(path) - 1) if path else None  # one for a line end in between


def append_summary(text: str) -> str | None:
    """Appends to the step's job summary; returns why that failed, None if it did not."""
    return _append("GITHUB_STEP_SUMMARY", text.encode("utf-8", "replace"))


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except OSError:
        return 0


def _append(variable: str, data: bytes) -> str | None:
    """Appends whole lines to the file that a variable names; nothing to do where it names none."""
    path = os.environ.get(variable)
    if not path:
        return None
    try:
        with Path(path).open("a+b") as stream:
            if stream.tell():
                stream.seek(-1, os.SEEK_END)
                data = data if stream.read(1) == b"\n" else b"\n" + data
            stream.write(data)
    except FileNotFoundError:  # a container that was given the variable and not the file
        return None
    except OSError as error:
        return reason_of(error)
    return None


def group(title: str, lines: str) -> str:
    """Lines of the log as a section that people unfold; `title` is ours. Nothing if there are none."""
    return f"::group::{title}\n{lines}::endgroup::\n" if lines else ""
