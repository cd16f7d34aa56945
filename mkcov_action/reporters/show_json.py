"""The JSON of `mkcov show`, version 1: mkcov_action/schema/show.schema.json describes every key.

It holds all that there is, however long the text would have been. The records of the views are its
objects; see mkcov_action/neighbourhood/model.py.
"""

from __future__ import annotations

import msgspec

from mkcov_action import __version__
from mkcov_action.neighbourhood.model import Shown
from mkcov_action.reporters.ascii_json import dumps

VERSION = 1
"""It changes when a key changes its meaning or goes away."""


def render(shown: Shown) -> str:
    """The views as JSON text with a final newline."""
    head = {"version": VERSION, "tool": {"name": "mkcov", "version": __version__}}
    return dumps({**head, **msgspec.to_builtins(shown)})
