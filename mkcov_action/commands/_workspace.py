"""Writes files into a checkout as if its owner did: below it, never outside, and not as root's."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from mkcov_action.artifacts import reason_of
from mkcov_action.commands._output import write_file

LONGEST_PATH = 4_096
"""Bytes that Linux takes of a path, its final null byte among them."""

_FILE_MODE = 0o644
_DIRECTORY_MODE = 0o755


@dataclass(frozen=True, slots=True)
class Workspace:
    """A checkout; `root` is its real path."""

    root: Path

    def locate(self, given: str) -> Path:
        """The real path of a file to write; ValueError, with the reason, if it may not be written."""
        if not given.isprintable():
            raise ValueError("it holds characters that cannot be shown")
        path = Path(os.path.realpath(self.root / given))
        if not path.is_relative_to(self.root):
            raise ValueError("it leads out of the workspace")
        if len(os.fsencode(path)) >= LONGEST_PATH:
            raise ValueError("it is too long")
        if given.endswith("/") or (os.path.lexists(path) and not path.is_file()):
            raise ValueError("it is no regular file")
        return path

    def name(self, path: Path) -> str:
        """A located file as later steps know it, who may not be in this container: relative to the checkout."""
        return path.relative_to(self.root).as_posix()

    def write(self, path: Path, text: str) -> str | None:
        """Writes a located file and the directories it needs; returns why that failed, or None."""
        try:
            for directory in reversed(path.parents):
                if directory.is_relative_to(self.root) and not directory.is_dir():
                    directory.mkdir()
                    self._hand_over(directory, _DIRECTORY_MODE)
        except OSError as error:
            return reason_of(error)
        reason = write_file(path, text)
        if reason is None:
            self._hand_over(path, _FILE_MODE)
        return reason

    def _hand_over(self, path: Path, mode: int) -> None:
        """Gives a file to the checkout's owner: who cleans up after a container is not root.

        Whoever is not allowed to do that is not root, and neither is then the file's owner.
        """
        with contextlib.suppress(OSError):
            path.chmod(mode)
            owner = self.root.stat()
            os.chown(path, owner.st_uid, owner.st_gid)
