"""Runs the image: as GitHub's runner does, or as a plain command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

SHARED = REPOSITORY.parent / "shared" / "container"
MOUNTED = "/github/workspace"


@dataclass(frozen=True)
class Step:
    """What a step of a job left behind; `commands` are the workflow commands that the runner obeys."""

    exit_code: int
    outputs: dict[str, str]
    summary: str
    commands: list[dict[str, str]]
    log: str

    def annotations(self, command: str = "error") -> list[dict[str, str]]:
        return [item for item in self.commands if item["command"] == command]


@dataclass(frozen=True)
class Engine:
    """A running engine, by the environment in which its client finds it."""

    environment: dict[str, str]

    def run(
        self, *command: str, check: bool = False, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, "PWD": str(cwd or Path.cwd())}
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=check,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
        )

    def cli(self, image: str, workspace: Path, *arguments: str, options: tuple[str, ...] = ()) -> Any:
        """The image as a command line, as the README says."""
        mount = ("-v", f"{workspace}:{MOUNTED}", "-w", MOUNTED)
        return self.run("docker", "run", "--rm", *mount, *options, image, *arguments)

    def action(self, workspace: Path, inputs: Mapping[str, str], image: str | None = None) -> Step:
        """The action as a step; without an image it is built first, as the runner does."""
        result = workspace.parent / f"step-{uuid.uuid4().hex}.json"
        command = [sys.executable, str(SHARED / "run_action.py"), "--action", str(REPOSITORY)]
        command += ["--workspace", str(workspace), "--json", str(result)]
        command += ["--image", image] if image else []
        for name, value in inputs.items():
            command += ["--with", f"{name}={value}"]
        done = self.run(*command, cwd=workspace)
        assert result.is_file(), done.stdout + done.stderr
        data = json.loads(result.read_bytes())
        assert data["exit_code"] == done.returncode
        return Step(data["exit_code"], data["outputs"], data["summary"], data["commands"], done.stdout)


def owner(path: Path) -> tuple[int, int, int]:
    """Who a file belongs to, and its mode."""
    status = os.stat(path)  # noqa: PTH116 - one line
    return status.st_uid, status.st_gid, status.st_mode & 0o777
