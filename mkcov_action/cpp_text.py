"""C++ text as far as the readers need it: comments, literals, escapes, integers, line numbers.

Nothing here trusts the text. Every pattern and every loop is linear in its length.
"""

from __future__ import annotations

import re

INTEGER = r"(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})[uUlLzZ]{0,3}(?![\w.])"
"""The pattern of an integer literal of at most 64 bits, with its suffix."""

# An unterminated comment or raw string runs to the end of the text, an unterminated string to the end
# of its line: so each character is looked at once. An apostrophe after a digit separates digits.
_HIDDEN = re.compile(
    r"""
      (?P<comment> //[^\n\\]*+(?:\\(?:\r\n|.)[^\n\\]*+)*
                 | /\*(?:.*?\*/|.*)
                 | R"(?<!\wR")(?P<fence>[^()\\\s"]{0,16})\((?:.*?\)(?P=fence)"|.*) )
    | "[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?
    | '(?<!\w')(?:\\.|[^'\\\n]){1,12}'
    """,
    re.VERBOSE | re.DOTALL,
)
_ON_ONE_LINE = re.compile(r"[^\n]+")
_ESCAPE = re.compile(r"\\(?:(?P<code>x[0-9a-fA-F]{1,2}|[0-7]{1,3})|(?P<letter>[abfnrtv'\"?\\]))")
_LETTERS = dict(zip("abfnrtv'\"?\\", "\a\b\f\n\r\t\v'\"?\\", strict=True))


def without_comments(text: str) -> str:
    """The text with comments and what literals hold as spaces: same length, same lines.

    The quotes of literals stay; what stood between them is found at the same place in `text`.
    """
    return _HIDDEN.sub(_hide, text)


def _hide(hidden: re.Match[str]) -> str:
    found = hidden[0]
    if hidden["comment"] is not None:
        return _spaces(found)
    closed = len(found) > 1 and found[-1] == found[0]
    return found[0] + _spaces(found[1:-1] if closed else found[1:]) + (found[0] if closed else "")


def _spaces(text: str) -> str:
    if "\n" not in text:
        return " " * len(text)
    return _ON_ONE_LINE.sub(lambda run: " " * len(run[0]), text)


_OTHER_BRANCH = re.compile(
    r"^[^\S\n]*#[^\S\n]*el(?:se|if)\b.*?(?=^[^\S\n]*#[^\S\n]*endif\b)", re.MULTILINE | re.DOTALL
)


def is_cut_off(text: str, code: str) -> bool:
    """Whether a text ends inside a block or a comment; `code` is what `without_comments` made of it.

    Both must say so: a literal that was misread, or one that holds braces, cuts nothing off.
    """
    opened = text.rfind("/*")
    in_comment = opened > text.rfind("*/") and not code[opened:].strip()
    return in_comment or (_ends_in_block(code) and _ends_in_block(text))


def _ends_in_block(text: str) -> bool:
    if text.count("{") <= text.count("}"):
        return False
    chosen = _OTHER_BRANCH.sub("", text)  # of what the preprocessor chooses from, the first counts
    return chosen.count("{") > chosen.count("}")


def unescape(literal: str) -> str:
    r"""What a string literal means, given what stands between its quotes.

    Knows the simple escapes, `\xNN` and octal ones; those give bytes, which are read as UTF-8.
    """
    if "\\" not in literal:
        return literal
    meant = _ESCAPE.sub(_byte_or_letter, literal)
    return meant.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _byte_or_letter(escape: re.Match[str]) -> str:
    if escape["letter"] is not None:
        return _LETTERS[escape["letter"]]
    digits = escape["code"]
    byte = int(digits[1:], 16) if digits[0] == "x" else int(digits, 8) & 0xFF
    return bytes([byte]).decode("ascii", "surrogateescape")


_WHOLE_INTEGER = re.compile(r"\s*(" + INTEGER + r")\s*")


def integer(text: str) -> int | None:
    """The value of a decimal or hexadecimal literal, None for anything else."""
    whole = _WHOLE_INTEGER.fullmatch(text)
    if whole is None:
        return None
    digits = whole[1].rstrip("uUlLzZ")
    return int(digits, 16) if digits[:2] in {"0x", "0X"} else int(digits)


class LineCounter:
    """Line numbers, 1-based, of places asked for in the order of the text: no table, one pass."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._line = 1

    def line_at(self, place: int) -> int:
        """The line of `place`, an index into the text that is not below the one asked before."""
        self._line += self._text.count("\n", self._place, place)
        self._place = place
        return self._line
