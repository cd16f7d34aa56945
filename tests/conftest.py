"""What all tests share: an environment that says nothing, the repository's root and the corpus."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

TERMINAL = frozenset({"COLUMNS", "FORCE_COLOR", "LINES", "NO_COLOR", "TERM"})
REPOSITORY = Path(__file__).resolve().parent.parent

# Deadlines measure the machine. In CI the examples are the same in every run: a red build is a change's
# fault, and new examples are found by the runs at home.
settings.register_profile("home", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "home")


@pytest.fixture(autouse=True)
def _silent_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a workflow's variables nor the terminal's reach the code under test."""
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "RUNNER_")) or name in TERMINAL:
            monkeypatch.delenv(name)


@pytest.fixture
def repository() -> Path:
    """The checkout's root."""
    return REPOSITORY


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real graphs beside the checkout; tests that ask for them are skipped where they are not."""
    directory = REPOSITORY.parent / "shared" / "corpus"
    if not directory.is_dir():
        pytest.skip("no corpus of real graphs at ../shared/corpus")
    return directory
