"""The image: what it holds, and that it is a plain command line without network, git or root."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.container.runner import Engine

pytestmark = pytest.mark.xdist_group("container")  # one engine serves one worker

MOST = 40_000_000
ALONE = ("--network", "none", "--read-only", "--cap-drop", "ALL", "--user", "1000:1000")


@pytest.fixture
def workspace(tmp_path: Path, repository: Path) -> Path:
    for demo in ("wired", "unwired"):
        shutil.copytree(repository / "fixtures" / "demo" / demo, tmp_path / demo)
    tmp_path.chmod(0o755)  # whoever runs in the container is not who runs the tests
    return tmp_path


@pytest.mark.parametrize("demo, code", [("wired", 0), ("unwired", 1)])
def test_a_plain_command_needs_no_network_no_git_and_no_root(
    engine: Engine, image: str, workspace: Path, demo: str, code: int
) -> None:
    result = engine.cli(image, workspace, "check", demo, options=ALONE)
    assert (result.returncode, result.stderr) == (code, "")


def test_nothing_is_asked_of_the_workspaces_python_files(engine: Engine, image: str, workspace: Path) -> None:
    for name in ("click", "json", "msgspec", "sitecustomize", "mkcov_action"):
        (workspace / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    result = engine.cli(image, workspace, "check", "wired", options=("-e", "PYTHONPATH=/github/workspace"))
    assert (result.returncode, result.stderr) == (0, "")


def test_without_arguments_it_is_help(engine: Engine, image: str, workspace: Path) -> None:
    assert "Usage: mkcov" in engine.cli(image, workspace).stderr


def test_size_labels_and_user(engine: Engine, image: str) -> None:
    inspected = engine.run("docker", "image", "inspect", image, "python:3.12-slim", check=True)
    ours, base = json.loads(inspected.stdout)
    assert ours["Size"] - base["Size"] <= MOST
    assert ours["Config"]["Entrypoint"] == ["/usr/local/bin/mkcov"]
    assert not ours["Config"].get("User")
    assert not ours["Config"].get("WorkingDir", "").strip("/")
    assert ours["Config"]["Labels"]["org.opencontainers.image.licenses"] == "MIT"


def test_the_lock_is_complete_and_no_compiler_came_along(engine: Engine, image: str) -> None:
    script = "python3 -m pip check; for c in cc gcc g++ clang; do command -v $c; done; true"
    result = engine.run("docker", "run", "--rm", "--entrypoint", "sh", image, "-c", script)
    assert result.stdout.splitlines() == ["sarif-om 1.0.4 requires pbr, which is not installed."]
