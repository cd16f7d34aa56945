r"""Untrusted text made safe for a terminal and for a line of a CI log.

Tensor names, paths and messages come from the artifacts. Whatever could move a cursor, colour,
hide or reorder text, start a new line or speak to a CI runner becomes a visible escape: `\n`,
`\x1b`, `\u202e`. A backslash of the text itself is doubled, so that an escape always stands for
exactly one character and two different names never look the same.

Runners obey `::name::` at the start of a line, after blanks too, and `##[name]` anywhere in one
(actions/runner ActionCommand.cs); neither passes.
"""

from __future__ import annotations

import re

NAME_LIMIT = 120
"""How many characters of a name are shown."""

MESSAGE_LIMIT = 1000
"""How many characters of a message are shown."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_./@+*$~-]+")
_COMMAND = re.compile(r" *(::)")

# Letters, marks and symbols to Unicode, so that isprintable() holds, yet invisible on a screen
# (property Default_Ignorable_Code_Point, and the empty Braille pattern).
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def clean(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Untrusted text on one line, cut to about `limit` characters with the full length said."""
    harmless = text.isascii() and text.isprintable() and not ("\\" in text or "##[" in text or "::" in text)
    if harmless and len(text) <= limit:
        return text
    shown, cut = _escaped(text, limit)
    return shown + cut


def name(text: str, limit: int = NAME_LIMIT) -> str:
    """An untrusted name within a line of ours: as it is if plain, else escaped in double quotes.

    The quotes keep a name with blanks, colons or brackets from passing for part of our line.
    """
    if len(text) <= limit and _PLAIN_NAME.fullmatch(text):
        return text
    shown, cut = _escaped(text, limit)
    return '"' + shown.replace('"', '\\"') + '"' + cut


def _escaped(text: str, limit: int) -> tuple[str, str]:
    """The escaped text, no longer than `limit`, and the words that say how much was cut."""
    pieces = [_escape(character) for character in text[:limit]]
    _break_commands(text[:limit], pieces)
    length = 0
    for index, piece in enumerate(pieces):
        length += len(piece)
        if length > limit:
            del pieces[index:]
            break
    cut = "" if len(pieces) == len(text) else f"... ({len(text):,} characters)"
    return "".join(pieces), cut


def _escape(character: str) -> str:
    """One character as it may be shown: itself if it is visible or a blank, else its escape."""
    if character.isprintable() and character != "\\" and not _INVISIBLE.match(character):
        return character
    return character.encode("unicode_escape").decode("ascii")


def _break_commands(text: str, pieces: list[str]) -> None:
    """Escapes one character of each thing that a runner would obey."""
    command = _COMMAND.match(text)
    if command:
        pieces[command.start(1)] = r"\x3a"
    start = text.find("##[")
    while start >= 0:
        pieces[start + 2] = r"\x5b"
        start = text.find("##[", start + 3)


def naming(text: str, tensor: str | None) -> str:
    """Clean text of a finding in which its tensor's name, however long, leaves the rest to be read."""
    if tensor is None or len(tensor) <= NAME_LIMIT:
        return clean(text)
    return name(tensor).join(map(clean, text.split(tensor)))
