"""The JSON schemas that ship with mkcov (draft 2020-12): what it reads and what it writes."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def load(name: str) -> dict[str, Any]:
    """The schema `<name>.schema.json` of this package; FileNotFoundError if there is none."""
    text = files(__name__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
