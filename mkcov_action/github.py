"""What GitHub's runner tells by its environment: the only reader of GITHUB_* variables."""

from __future__ import annotations

import os
from pathlib import Path


def workspace() -> Path | None:
    """The checkout of a running workflow, None outside of one."""
    value = os.environ.get("GITHUB_WORKSPACE")
    return Path(value) if value else None
