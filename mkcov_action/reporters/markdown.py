r"""Untrusted text made safe for Markdown as GitHub renders it, and the few forms a page is made of.

A backslash is not enough there. GitHub works on the rendered text once more and links @mentions,
#123, commit ids and addresses, and turns :codes: into pictures and $…$ into formulas, however
they were escaped; it leaves code alone. So text is cut into words: plain ones stand as they are,
any other becomes a code span, within which every character is itself. Names gain by it too:
`rope_cos` reads better as code.

Everything passes `clean` first, so no line break, control or invisible character gets here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from mkcov_action.reporters.clean import MESSAGE_LIMIT, NAME_LIMIT, clean

# Words that no renderer and no filter of GitHub's makes anything of. A commit id may be all letters or
# all digits; a repository may turn any word with a digit or with a capital and a hyphen into a link.
_PLAIN = re.compile(
    r"(?!(?i:[a-f]{7,40})$)[A-Za-z]{1,40}(?:'[a-z]+)?"
    r"|[a-z]+(?:-[a-z]+)+"
    r"|[0-9]{1,6}|[0-9]{1,3}(?:,[0-9]{3})+"
    r"|…"
)
_OPENING = "(\"'"
_CLOSING = ")\"',.;:!?"
_WORD = re.compile(" +|[^ ]+")
_LIST_ITEM = re.compile(r"[0-9]+[.)]")


def prose(text: str, limit: int = MESSAGE_LIMIT, *, name: str | None = None) -> str:
    """An untrusted sentence on one line: plain words as they are, `name` and everything else as code."""
    return escape(clean(text, limit), name=name)


def code(text: str, limit: int = NAME_LIMIT) -> str:
    """An untrusted name as a code span."""
    return span(clean(text, limit))


def escape(shown: str, *, name: str | None = None) -> str:
    """What `prose` does, for text that is clean already."""
    pieces: list[tuple[str, bool]] = []
    for text, is_code in _pieces(shown, name):
        pieces.append((text, is_code))
        if is_code:
            _join_spans(pieces)
    escaped = "".join(span(text) if is_code else text for text, is_code in pieces)
    if item := _LIST_ITEM.match(escaped):
        return f"{escaped[: item.end() - 1]}\\{escaped[item.end() - 1 :]}"
    return escaped


def _join_spans(pieces: list[tuple[str, bool]]) -> None:
    """Makes one of the last two spans: their fences may not touch, and one blank need not part them."""
    for length in (2, 3):
        last = pieces[-length:]
        if len(last) == length and last[0][1] and last[1:-1] in ([], [(" ", False)]):
            pieces[-length:] = [("".join(text for text, _ in last), True)]
            return


def _pieces(shown: str, name: str | None) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it has to be code."""
    done = 0
    for start, end in _occurrences(shown, clean(name, len(shown)) if name else ""):
        yield from _words(shown, done, start)
        yield shown[start:end], True
        done = end
    yield from _words(shown, done, len(shown))


def _occurrences(shown: str, name: str) -> Iterator[tuple[int, int]]:
    """Where the name stands as a word of its own, or as several if it holds blanks."""
    end = 0
    while name and (start := shown.find(name, end)) >= 0:
        end = start + len(name)
        before, after = shown[:start].rstrip(_OPENING), shown[end:].lstrip(_CLOSING)
        if before[-1:] in ("", " ") and after[:1] in ("", " "):
            yield start, end


def _words(shown: str, start: int, end: int) -> Iterator[tuple[str, bool]]:
    for match in _WORD.finditer(shown, start, end):
        word = match.group()
        if word[0] == " ":  # several would show as one, and those at an end not at all
            yield word, len(word) > 1 or match.start() == 0 or match.end() == len(shown)
            continue
        rest = word.lstrip(_OPENING)
        core = rest.rstrip(_CLOSING)
        opening, closing = word[: len(word) - len(rest)], rest[len(core) :]
        parts = (opening, False), (core, not _PLAIN.fullmatch(core)), (closing, False)
        yield from (part for part in parts if part[0])


def span(shown: str) -> str:
    """What `code` does, for text that is clean already.

    The fence is a run of backticks of a length that the text does not hold. The limits of `clean` keep that run far below the eighty that cmark-gfm still recognises.
    """
    shown = shown or '""'
    runs = {len(run) for run in re.findall("`+", shown)}
    fence = "`" * next(length for length in count(1) if length not in runs)
    # One blank is taken off both ends if both have one and there is more than blanks.
    stripped = shown[0] == shown[-1] == " " and shown.strip(" ")
    pad = " " if stripped or "`" in {shown[0], shown[-1]} else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def row(cells: Iterable[str]) -> str:
    """One line of a table; cells are Markdown, and a pipe in one, in code too, is escaped here."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def table(titles: Iterable[str], alignment: str) -> str:
    """The head of a table; `alignment` has a letter a column: `l` or `r`."""
    rules = {"l": ":--", "r": "--:"}
    return row(titles) + row(rules[letter] for letter in alignment)


def fence_for(lines: Iterable[str]) -> str:
    """A fence for a block of these clean lines, longer than every run of backticks in them."""
    return "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))


def folded(title: str, body: str = "") -> tuple[str, str]:
    """What stands before and after a part that a click opens; `title` must be words of ours."""
    return f"<details>\n<summary>{title}</summary>\n\n{body}", "\n</details>\n"
