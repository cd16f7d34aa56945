"""Writes files into a checkout as if its owner did: below it, never outside, and not as root's."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from mkcov_action.artifacts import reason_of
from mkcov_action.commands._output import write_file

_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Workspace:
    """A checkout; `root` is its real path."""

    root: Path

    def locate(self, given: str) -> Path:
        """The real path of a file to write; ValueError, with the reason, if it may not be written."""
        if not given.isprintable():
            raise ValueError("a file name with control characters")
        path = Path(os.path.realpath(self.root / given))
        if not path.is_relative_to(self.root):
            raise ValueError("it leads out of the workspace")
        if given.endswith("/") or (os.path.lexists(path) and not path.is_file()):
            raise ValueError("it is no regular file")
        return path

    def name(self, path: Path) -> str:
        """A path of ours as later steps, on the host, can use it: relative to the checkout."""
        return path.relative_to(self.root).as_posix()

    def write(self, path: Path, text: str) -> str | None:
        """Writes a located file and the directories it needs; returns why that failed, or None."""
        try:
            self._make(path.parent)
        except OSError as error:
            return reason_of(error)
        reason = write_file(path, text)
        if reason is None:
            self._hand_over(path, _FILE_MODE)
        return reason

    def _make(self, directory: Path) -> None:
        if directory.is_dir() or directory == self.root:
            return
        self._make(directory.parent)
        directory.mkdir()
        self._hand_over(directory, _DIRECTORY_MODE)

    def _hand_over(self, path: Path, mode: int) -> None:
        """Gives a file to the checkout's owner: a container's root is not who cleans up after it.

        Whoever may not do that is no root, and the file is then not root's either.
        """
        with contextlib.suppress(OSError):
            path.chmod(mode)
            owner = self.root.stat()
            os.chown(path, owner.st_uid, owner.st_gid)
