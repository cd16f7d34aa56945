"""Writes the graphs under fixtures/: python -m tools.build_fixtures.

Deterministic, so that a second run changes nothing; a test compares what is on disk with a fresh
build.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from tools.builder import GraphBuilder, decoder, write_ranks
from tools.builder.decoder import Sizes
from tools.rule_cases import CASES, Case

ROOT = Path(__file__).resolve().parents[1] / "fixtures"

GLM_LAYERS = 78
"""GLM-5.1 as published: each table is then read 156 times, by the KV gather and the query's rotation."""


def demo(*, wired: bool) -> list[GraphBuilder]:
    """Two ranks of a two-layer decoder, one row at a time; every task type but one is Mirage's own."""
    return decoder(layers=2, ranks=2, wired=wired, sizes=Sizes(batch=1, splits=1))


def glm(*, wired: bool) -> list[GraphBuilder]:
    """GLM-5.1's depth on one rank, with a toy's sizes and one task an operator.

    The fix gave the KV gather (278) two more inputs and the query an operator of its own, whose
    number (296) has no name in Mirage.
    """
    return decoder(layers=GLM_LAYERS, wired=wired, rotary="gather", sizes=Sizes(batch=1, tiles=1, splits=1))


GRAPHS: dict[str, Callable[[], list[GraphBuilder]]] = {
    "demo/unwired": lambda: demo(wired=False),
    "demo/wired": lambda: demo(wired=True),
    "glm/before": lambda: glm(wired=False),
    "glm/after": lambda: glm(wired=True),
}


def build(root: Path) -> Iterator[Path]:
    """Writes every graph below `root`. GLM's task graphs are compressed: they have a megabyte each."""
    for name, graph in GRAPHS.items():
        yield from write_ranks(graph(), root / name, compress="xz" if name.startswith("glm/") else None)
    for case in CASES:
        yield from write_case(case, root / "rules" / case.path)


def write_case(case: Case, directory: Path) -> list[Path]:
    """Writes a rule's case anew, leaving only its golden file; returns the files."""
    for stale in directory.glob("*"):
        if stale.is_dir():
            shutil.rmtree(stale)
        elif stale.name != "expected.json":
            stale.unlink()
    directory.mkdir(parents=True, exist_ok=True)
    case.recipe(directory)
    if case.arguments:
        (directory / "arguments").write_text("\n".join(case.arguments) + "\n")
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.name != "expected.json")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("root", type=click.Path(file_okay=False, path_type=Path), default=ROOT)
def main(root: Path) -> None:
    """Write every graph below fixtures/ (or below ROOT): the demos, GLM, and the cases of each rule."""
    for path in build(root):
        click.echo(f"{path.stat().st_size:>9,} {path.relative_to(root)}")


if __name__ == "__main__":
    main()
