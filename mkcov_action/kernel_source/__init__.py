"""Reads kernel_<rank>.cu: tensor declarations and the dispatcher's branches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mkcov_action.cpp_text import is_cut_off, without_comments
from mkcov_action.finding import Artifact, Problem, ProblemKind
from mkcov_action.kernel_source.declarations import Copy, Declaration, Origin, mask_names, read_declarations
from mkcov_action.kernel_source.dispatcher import Branch, Dispatcher, read_dispatcher

__all__ = [
    "Branch",
    "Copy",
    "Declaration",
    "Dispatcher",
    "KernelSource",
    "Origin",
    "read_kernel_source",
]


@dataclass(frozen=True, slots=True)
class KernelSource:
    """What the two artifacts' kernel half says.

    `declarations` maps tensor names, never `nullptr`. `dispatcher` is None if its form is not
    known. `world_size` is the literal of `assert(num_gpus = N)`, None if there is none.
    """

    declarations: Mapping[str, Declaration]
    dispatcher: Dispatcher | None
    world_size: int | None


def read_kernel_source(data: bytes) -> tuple[KernelSource | None, tuple[Problem, ...]]:
    """Reads a kernel's text; returns what it declares, or None and the problem that says why.

    Never raises on content: bytes that are not UTF-8 are read as backslash escapes.
    """
    text = data.decode("utf-8", "backslashreplace")
    code = without_comments(mask_names(text))
    declarations, world_size = read_declarations(text, code)
    if not declarations:
        message = "the kernel declares no tensor in any known form"
        return None, (Problem(kind=ProblemKind.UNRECOGNISED, artifact=Artifact.KERNEL, message=message),)
    if is_cut_off(text, code):
        message = "the text ends inside a block or a comment: the file is cut off"
        last = text.rstrip().count("\n") + 1
        problem = Problem(
            kind=ProblemKind.UNREADABLE, artifact=Artifact.KERNEL, code="cut off", message=message, line=last
        )
        return None, (problem,)
    return KernelSource(declarations, read_dispatcher(text, code), world_size), ()
