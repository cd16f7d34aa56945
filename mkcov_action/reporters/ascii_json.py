r"""JSON as mkcov writes it: pure ASCII, so no text of the artifacts reaches a terminal raw.

A lone surrogate survives as `\ud800`. The same document always gives the same bytes.
"""

from __future__ import annotations

import json
from typing import Any


def dumps(document: dict[str, Any]) -> str:
    """A document as JSON text with a final newline."""
    text = json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False)
    # On standard output this is a CI log, whose runner obeys `##[` anywhere in a line. It can only
    # stand in a string, where JSON lets any character be written by its code.
    return text.replace("##[", "##\\u005b") + "\n"
