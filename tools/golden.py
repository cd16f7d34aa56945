"""Writes the golden files: python -m tools.golden. Look at the difference before you commit it.

Every bad case of a rule has its findings in expected.json; the demonstration graphs have what a
terminal, a job summary and a workflow log show. `--check` changes nothing and fails where one is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from mkcov_action.commands import cli

ROOT = Path(__file__).resolve().parents[1] / "fixtures"
SHOWN = ("demo/unwired", "demo/wired", "glm/before", "glm/after")


def check(directory: Path, root: Path, *arguments: str) -> Result:
    """Runs `mkcov check` on a directory, without the terminal."""
    result = CliRunner().invoke(cli, ["check", str(directory), "--root", str(root), *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def arguments_of(directory: Path) -> list[str]:
    """The further arguments that a case is run with: one a line in its file `arguments`."""
    path = directory / "arguments"
    return path.read_text().splitlines() if path.exists() else []


def findings_of(directory: Path) -> dict[str, Any]:
    """What a case yields: the exit code, the findings and what was not checked."""
    result = check(directory, directory, *arguments_of(directory), "--json", "-")
    report = json.loads(result.stdout)
    return {
        "exit_code": report["exit_code"],
        "findings": report["findings"],
        "not_checked": report["not_checked"],
    }


def goldens(root: Path = ROOT) -> Iterator[tuple[Path, str]]:
    """Every golden file with the text that belongs into it."""
    for directory in sorted(root.glob("rules/*/bad/*")):
        yield directory / "expected.json", json.dumps(findings_of(directory), indent=2) + "\n"
    for name in SHOWN:
        directory = root / name
        yield directory / "expected.txt", check(directory, root.parent).stdout
        yield directory / "expected.summary.md", check(directory, root.parent, "--summary", "-").stdout
        annotated = check(directory, root.parent, "--annotations").stdout
        commands = [line for line in annotated.splitlines(keepends=True) if line.startswith("::")]
        yield directory / "expected.annotations.txt", "".join(commands)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", "only_check", is_flag=True, help="Change nothing; fail if a file is stale.")
def main(*, only_check: bool) -> None:
    """Write the golden files below fixtures/."""
    stale = [
        (path, text)
        for path, text in goldens()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        click.echo(f"{'stale' if only_check else 'written'}: {path.relative_to(ROOT.parent)}")
        if not only_check:
            path.write_text(text, encoding="utf-8")
    sys.exit(bool(stale and only_check))


if __name__ == "__main__":
    main()
