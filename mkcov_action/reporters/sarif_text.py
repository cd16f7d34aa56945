r"""Untrusted text made safe for a SARIF message and for an artifact's URI.

A plain text message is not quite plain: `[text](1)` is a link to a related location, or to any
URI, and `{0}` is a placeholder (SARIF 2.1.0 §3.11.5 and §3.11.6). Brackets and backslashes of the
text itself are escaped by a backslash wherever they stand: the specification asks for it in links only, but
CodeQL writes it everywhere and code scanning reads it so.

Viewers that do not know the escape look for `](`, and one that knows placeholders shows
`undefined` for them: neither passes, one character of each becomes an escape of clean.py's kind. All
other braces stay as they are. They should be doubled, yet viewers then show two.
"""

from __future__ import annotations

import re
from urllib.parse import quote

_SPECIAL = re.compile(r"[\\\[\]]")
_PLACEHOLDER = re.compile(r"\{(?=\d+\})")
_URI = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-Fa-f]{2})+")


def literal(text: str) -> str:
    """Clean text as part of a plain text message that is to be read letter by letter."""
    unlinked = _PLACEHOLDER.sub(r"\\x7b", text.replace("](", r"]\x28"))
    return _SPECIAL.sub(r"\\\g<0>", unlinked)


def link(text: str, identifier: int) -> str:
    """A link to the location with that id."""
    return f"[{literal(text)}]({identifier})"


def sentence(text: str) -> str:
    """The text with a period at its end, unless it has one."""
    return text if text.endswith(".") else f"{text}."


def uri(text: str) -> str:
    """A URI as it is; whatever is none, such as the bare name of a directory, percent-encoded."""
    return text if _URI.fullmatch(text) else quote(text.encode("utf-8", "surrogatepass"), safe="/")
