"""Plants every kind of fault at many seeded sites of clean graphs and counts what mkcov says.

    python -m tools.detection [--sites N] [--write] [FAULT ...]

Clean graphs are built ones and, where ../shared/corpus is, real ones. With --write the table goes
into docs/detection.md.
"""

from __future__ import annotations

import argparse
import lzma
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from mkcov_action.config import Config
from mkcov_action.faults import FAULTS, Fault, RankArtifacts
from mkcov_action.finding import Severity
from mkcov_action.processes import Lost, in_processes
from mkcov_action.selftest import Texts, audited, planted
from tools.builder import decoder
from tools.builder.decoder import Sizes
from tools.docs import replace_block

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT.parent / "shared" / "corpus"
PAGE = ROOT / "docs" / "detection.md"

# What a decoder is built with; a rank has some hundred tasks.
BUILT: dict[str, dict[str, Any]] = {
    "built, latent attention": {"layers": 6, "attention": "mla", "sizes": Sizes(tiles=4)},
    "built, paged attention": {"layers": 6, "attention": "paged", "sizes": Sizes(tiles=4)},
    "built, two ranks": {"layers": 2, "ranks": 2, "attention": "paged", "all_reduce": "put"},
    "built, one layer on two ranks": {"layers": 1, "ranks": 2, "attention": "mla", "all_reduce": "put"},
    "built, tile all-reduce": {"layers": 2, "ranks": 2, "attention": "mla", "sizes": Sizes(tiles=4)},
}
REAL = ("qwen3-8b-hopper-2layers", "qwen3-8b-blackwell-2layers", "qwen3-0.6b-hopper")


def graphs() -> list[str]:
    """The clean graphs that there are."""
    return [*BUILT, *(name for name in REAL if (CORPUS / name).is_dir())]


@cache
def texts_of(name: str) -> tuple[Texts, ...]:
    """The files of a graph's ranks."""
    if name in BUILT:
        built = decoder(**BUILT[name])
        return tuple(Texts(graph.rank, graph.kernel_text(), graph.task_graph_text()) for graph in built)
    files = ("kernel_0.cu.xz", "task_graph_0.json.xz")
    kernel, graph = (lzma.decompress((CORPUS / name / file).read_bytes()).decode() for file in files)
    return (Texts(0, kernel, graph),)


def ranks_of(name: str) -> list[RankArtifacts]:
    """A graph's artifacts, to be edited."""
    return [rank.artifacts() for rank in texts_of(name)]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one planted fault: what was planted, and the rules that said so, with their messages."""

    planted: str
    rules: frozenset[str]
    messages: tuple[str, ...]

    def is_named(self, fault: Fault) -> bool:
        """Whether all the rules that must name the fault do."""
        return fault.named_by <= self.rules

    def stray(self, fault: Fault) -> frozenset[str]:
        """The rules that say what they should not."""
        return self.rules - fault.named_by - fault.also


def plant(fault: Fault, graph: str, site: int, directory: Path) -> Outcome | None:
    """Plants a fault at one site and audits the graph; None where the graph has no site for it."""
    done = planted(fault, texts_of(graph), f"{graph} {site}", directory, Config())
    if done is None:
        return None
    what, report = done
    if report.failures:
        raise RuntimeError(f"{fault.name} in {graph}: {report.failures}")
    loud = [finding for finding in report.findings if finding.severity > Severity.NOTE]
    return Outcome(what, frozenset(f.rule for f in loud), tuple(f"{f.rule} {f.message}" for f in loud))


@dataclass(slots=True)
class Row:
    """The figures of one kind: sites, how many were named, and what else was said, by rule."""

    fault: Fault
    sites: int = 0
    named: int = 0
    graphs: list[str] = field(default_factory=list)
    beside: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def add(self, graph: str, site: int, outcome: Outcome) -> None:
        """Counts one planted fault."""
        self.sites += 1
        self.graphs += [graph] * (graph not in self.graphs)
        if outcome.is_named(self.fault):
            self.named += 1
        else:
            said = ", ".join(sorted(outcome.rules)) or "nothing"
            self.misses.append(f"{self.fault.name}, {graph}, site {site} ({outcome.planted}): {said}")
        self.beside.update(outcome.rules - self.fault.named_by)


def measure(fault: Fault, sites: int) -> Row:
    """Plants one kind at so many sites of every graph that has any."""
    row = Row(fault)
    more = iter(range(sites, _MOST_SITES))
    with tempfile.TemporaryDirectory() as scratch:
        for graph in graphs():
            directory = Path(scratch) / _name(graph)
            directory.mkdir()
            _measure(row, graph, range(sites), directory)
        for site in more:  # a kind that few graphs have a place for
            if row.sites >= _FEWEST_SITES or not row.graphs:
                break
            for graph in row.graphs:
                _measure(row, graph, range(site, site + 1), Path(scratch) / _name(graph))
    return row


_FEWEST_SITES, _MOST_SITES = 20, 60


def _name(graph: str) -> str:
    return graph.replace(" ", "-").replace(",", "")


def _measure(row: Row, graph: str, sites: range, directory: Path) -> None:
    for site in sites:
        outcome = plant(row.fault, graph, site, directory)
        if outcome is None:
            break
        row.add(graph, site, outcome)


def table(rows: Iterable[Row], clean: Sequence[str]) -> str:
    """The page's generated part: a line a kind, what was missed, and what clean graphs show."""
    lines = [
        "| planted | must be named by | sites | graphs | named | also said there |",
        "|---|---|---:|---:|---:|---|",
    ]
    misses: list[str] = []
    group = ""
    for row in rows:
        if row.fault.group != group:
            group = row.fault.group
            lines.append(f"| **{group}** | | | | | |")
        beside = ", ".join(f"{rule} ({count})" for rule, count in sorted(row.beside.items()))
        rate = f"{row.named / row.sites:.0%}" if row.sites else "no site"
        rules = ", ".join(sorted(row.fault.named_by))
        lines.append(
            f"| {row.fault.what} | {rules} | {row.sites} | {len(row.graphs)} | {rate} | {beside or '–'} |"
        )
        misses += row.misses
    lines += ["", "**Missed:** " + ("none." if not misses else ""), *(f"- {miss}" for miss in misses)]
    lines += ["", f"**False alarms** at error or warning on the {len(graphs())} clean graphs: "
              + ("none." if not clean else "; ".join(clean))]  # fmt: skip
    return "\n".join(lines)


def false_alarms() -> Iterator[str]:
    """What the graphs show before anything is planted."""
    for graph in graphs():
        with tempfile.TemporaryDirectory() as scratch:
            report = audited(ranks_of(graph), Path(scratch), Config())
        yield from (f"{graph}: {f.rule} {f.message}" for f in report.findings if f.severity > Severity.NOTE)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit status says whether all was named and nothing else said."""
    parser = argparse.ArgumentParser(prog="python -m tools.detection", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("faults", nargs="*", metavar="FAULT", help="kinds to plant (default: all)")
    parser.add_argument(
        "--sites", type=int, default=4, help="sites a kind and graph, and 20 in all (default 4)"
    )
    parser.add_argument("--write", action="store_true", help="write the table into docs/detection.md")
    options = parser.parse_args(arguments)
    chosen = [fault for fault in FAULTS if fault.name in options.faults or not options.faults]
    answers = in_processes(
        partial(measure, sites=options.sites), chosen, at_most=os.cpu_count() or 1, progress=lambda *_: None
    )
    rows = [row for row in answers if not isinstance(row, Lost)]
    alarms = list(false_alarms())
    text = table(rows, alarms)
    print(text)
    if options.write:
        PAGE.write_text(replace_block(PAGE.read_text(encoding="utf-8"), "detection", text), encoding="utf-8")
    strays = {row.fault.name: sorted(set(row.beside) - row.fault.also) for row in rows}
    for name, rules in strays.items():
        if rules:
            print(f"{name}: unexpected {', '.join(rules)}", file=sys.stderr)
    return int(
        any(row.misses for row in rows) or any(strays.values()) or bool(alarms) or len(rows) < len(chosen)
    )


if __name__ == "__main__":
    sys.exit(main())
