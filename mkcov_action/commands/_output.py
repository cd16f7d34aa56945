"""Writes what reporters render: to the terminal in any encoding, to files all or nothing."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import tempfile
from pathlib import Path
from typing import TextIO

import click

from mkcov_action.artifacts import is_artifact, reason_of


def write(stream: TextIO | None, text: str) -> None:
    """Prints text as it is; what the stream's encoding lacks is escaped rather than fatal.

    Raises ClickException where standard output takes nothing (it is closed, its disk is full); a
    standard error that takes nothing is silence.
    """
    reason = _unwritten(stream, text)
    if reason is not None and stream is not sys.stderr:
        raise click.ClickException(f"cannot write to standard output: {reason}")


def _unwritten(stream: TextIO | None, text: str) -> str | None:
    """Why a stream did not take the text; None if it did, or if its reader has seen enough (`| head`)."""
    if stream is None:  # closed before this process began
        return os.strerror(errno.EBADF)
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError as error:
        # What is still buffered would fail once more when the interpreter ends, and hide the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return None if isinstance(error, BrokenPipeError) else reason_of(error)
    return None


def wants_color(stream: TextIO | None, color: str) -> bool:
    """Whether to colour: `always`, `never`, or `auto` (on a terminal, unless NO_COLOR is set)."""
    if color == "auto":
        terminal = stream is not None and stream.isatty()
        return terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return color == "always"


def write_file(path: Path, text: str) -> str | None:
    """Writes a report under a temporary name and renames it; returns why that failed, or None."""
    if is_artifact(path.name):
        return "that is the name of a generated file, which it would replace"
    try:
        mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
        if path.exists() and not path.is_file():  # a pipe or /dev/stdout cannot be replaced
            path.write_text(text, encoding="utf-8")
            return None
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:100]}.")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
            temporary.chmod(mode & 0o777)
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except (OSError, ValueError) as error:
        return reason_of(error)
    return None


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


class ProgressLine:
    """One line on standard error that says how far long work is; silent unless that is a terminal."""

    def __init__(self, stream: TextIO | None = None, noun: str = "reading ranks") -> None:
        self._noun = noun
        self._stream = stream or sys.stderr
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        """Shows that `done` of `total` are done."""
        if self._stream.isatty() and total:
            self._stream.write(f"\r\x1b[2K{self._noun}: {done} of {total}")
            self._stream.flush()
            self._shown = True

    def clear(self) -> None:
        """Takes the line away."""
        if self._shown:
            self._stream.write("\r\x1b[2K")
            self._stream.flush()
            self._shown = False
