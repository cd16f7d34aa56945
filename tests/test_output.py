"""Where a command's words go: progress on terminals only, colour on request, files all or nothing."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path

import pytest

from mkcov_action.commands._output import ProgressLine, wants_color, write, write_file


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_goes_away() -> None:
    terminal = Terminal()
    progress = ProgressLine(terminal)
    for done in range(3):
        progress(done, 8)
    progress.clear()
    assert terminal.getvalue().split("\r\x1b[2K") == [
        "",
        "reading ranks: 0 of 8",
        "reading ranks: 1 of 8",
        "reading ranks: 2 of 8",
        "",
    ]


def test_progress_is_silent_in_logs() -> None:
    log = io.StringIO()
    progress = ProgressLine(log)
    progress(1, 8)
    progress.clear()
    assert log.getvalue() == ""


@pytest.mark.parametrize(
    "choice, environment, colored",
    [
        ("auto", {"TERM": "xterm"}, True),
        ("auto", {"TERM": "xterm", "NO_COLOR": "1"}, False),
        ("auto", {"TERM": "dumb"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"TERM": "xterm"}, False),
    ],
)
def test_colour_is_for_terminals_and_for_those_who_ask(
    choice: str, environment: dict[str, str], colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert wants_color(Terminal(), choice) == colored
    assert wants_color(io.StringIO(), choice) == (choice == "always")


def test_a_file_is_replaced_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    path.chmod(0o600)
    assert write_file(path, "new\n") is None
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new\n", 0o600)
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.json"]


def test_a_new_file_has_the_mode_that_the_user_asks_of_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        assert write_file(tmp_path / "a", "") is None
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_what_cannot_be_written_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    assert write_file(tmp_path / "no" / "a", "") == "No such file or directory"
    (tmp_path / "d").mkdir()
    assert write_file(tmp_path / "d", "") == "Is a directory"
    assert [entry.name for entry in tmp_path.rglob("*")] == ["d"]


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert write_file(pipe, "text") is None
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_what_an_encoding_lacks_is_escaped() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    write(stream, "größe\n")
    stream.seek(0)
    assert stream.read() == "gr\\xf6\\xdfe\n"
