"""A private engine and the image, for the container tests; one worker has them all (--dist loadgroup)."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.container.runner import SHARED, Engine

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where the engine's scripts are absent, each test says so."""
    reason = "no scripts for a container engine at ../shared/container"
    for item in items:
        if item.path.is_relative_to(HERE) and not (SHARED / "with_engine.sh").is_file():
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The engine lives as long as its standard input: it also ends if this process is killed."""
    with tempfile.TemporaryDirectory() as directory, _alone():
        told = Path(directory) / "environment"
        os.mkfifo(told)
        script = f'env -0 >"{told}"; cat >/dev/null'
        command = [str(SHARED / "with_engine.sh"), "bash", "-c", script]
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            try:
                # A writer of our own keeps the pipe's end from hanging us if the engine never starts.
                pairs = _read(told, process).split("\0")
                yield Engine(dict(pair.split("=", 1) for pair in pairs if "=" in pair))
            finally:
                assert process.stdin
                process.stdin.close()
                process.wait(timeout=120)


def _read(pipe: Path, process: subprocess.Popen[bytes]) -> str:
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    while process.poll() is None:
        try:
            return reader.communicate(timeout=1)[0]
        except subprocess.TimeoutExpired:
            continue
    reader.kill()
    reader.communicate()
    pytest.fail(f"the container engine did not start: exit status {process.returncode}")


class _alone:  # noqa: N801 - reads as a word of `with`
    """Engines of one machine share a bridge: the second waits, unless it would wait for itself."""

    def __init__(self) -> None:
        self.file = (Path(tempfile.gettempdir()) / "mkcov-engine.lock").open("a+")

    def __enter__(self) -> None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.file.seek(0)
            if run and self.file.read() == run:
                pytest.fail("the container tests must share a worker: run pytest with --dist loadgroup")
            fcntl.flock(self.file, fcntl.LOCK_EX)
        self.file.seek(0)
        self.file.truncate()
        self.file.write(run)
        self.file.flush()

    def __exit__(self, *_: object) -> None:
        self.file.close()


@pytest.fixture(scope="session")
def image(engine: Engine) -> str:
    """The real Dockerfile, built as the runner builds it: without a single option."""
    engine.run("docker", "build", "--quiet", "-t", "mkcov:test", str(REPOSITORY), check=True)
    return "mkcov:test"
