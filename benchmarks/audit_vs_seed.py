"""Measures `mkcov check` against json.load and one counting pass, in one run, alternating.

    python -m benchmarks.audit_vs_seed [DIR] [--rounds N] [--build TASKS] [--write-readme]

DIR holds the two artifacts of each rank, plain or compressed; compressed ones are unpacked under
build/ first, which is not timed. Without DIR it is the largest real graph of the corpus beside the
checkout or, where there is none or with --build, a decoder of so many tasks a rank. A built decoder
is the hard case: its tasks share next to nothing, while in real graphs five of six input lists repeat.
The other side is benchmarks/seed_method.py: one process a rank, all ranks at once.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import BinaryIO

from benchmarks.process_tree import Measurement, measure
from tools.builder import decoder, write_ranks
from tools.docs import replace_block

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
REAL = ROOT.parent / "shared" / "corpus" / "deepseek-v3-61layers-tp8"
TASKS = 100_000
MEGABYTE = 1_000_000
COMPRESSED = frozenset({".gz", ".xz"})


@dataclass(frozen=True, slots=True)
class Comparison:
    """The rounds of both sides; `task_graph_bytes` is the size of one rank's task graph."""

    ranks: int
    task_graph_bytes: int
    mkcov: Sequence[Measurement]
    seed: Sequence[Measurement]

    def seconds(self) -> tuple[float, float]:
        """Median wall time of mkcov and of the seed's method."""
        return median(run.seconds for run in self.mkcov), median(run.seconds for run in self.seed)

    def peaks(self) -> tuple[float, float]:
        """Median peak memory, in bytes, of mkcov and of the seed's method."""
        return median(run.peak_bytes for run in self.mkcov), median(run.peak_bytes for run in self.seed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and, if asked, put the ratios into the README."""
    options = parse(arguments)
    real = options.directory or (REAL if REAL.is_dir() and not options.build else None)
    directory = unpacked(real) if real else built(options.build or TASKS)
    comparison = compare(directory, options.rounds)
    print(table(comparison))
    if options.write_readme:
        readme = ROOT / "README.md"
        text = replace_block(readme.read_text(encoding="utf-8"), "bench", readme_block(comparison))
        readme.write_text(text, encoding="utf-8")
    return 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit_vs_seed", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("directory", nargs="?", type=Path, metavar="DIR")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side (default 3)")
    parser.add_argument("--build", type=int, metavar="TASKS", help="build a decoder of so many tasks a rank")
    parser.add_argument("--write-readme", action="store_true", help="write the ratios into README.md")
    return parser.parse_args(arguments)


def unpacked(directory: Path) -> Path:
    """The directory itself, or a copy under build/ in which nothing is compressed."""
    if not any(path.suffix in COMPRESSED for path in directory.iterdir()):
        return directory
    target = BUILD / directory.resolve().name
    target.mkdir(parents=True, exist_ok=True)
    for path in sorted(directory.iterdir()):
        plain = target / (path.stem if path.suffix in COMPRESSED else path.name)
        if not plain.exists():
            partial = plain.with_name(f"{plain.name}.partial")
            with opened(path) as source, partial.open("wb") as sink:
                shutil.copyfileobj(source, sink, MEGABYTE)
            partial.rename(plain)
    return target


def opened(path: Path) -> BinaryIO | gzip.GzipFile | lzma.LZMAFile:
    """A file's uncompressed bytes."""
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix == ".gz":
        return gzip.open(path)
    return path.open("rb")


def built(tasks: int) -> Path:
    """A two-rank decoder of about that many tasks a rank, written by the graph builder."""
    target = BUILD / f"decoder-{tasks}"
    if not target.is_dir():
        partial = target.with_name(f"{target.name}.partial")
        write_ranks(decoder(layers=61, ranks=2, tasks=tasks), partial)
        partial.rename(target)
    return target


def ranks_of(directory: Path) -> list[tuple[Path, Path]]:
    """The kernel and the task graph of each rank."""
    graphs = sorted(directory.glob("task_graph_*.json"))
    if not graphs:
        sys.exit(f"{directory}: no task_graph_<rank>.json")
    return [(graph.with_name(f"kernel_{graph.stem.rpartition('_')[2]}.cu"), graph) for graph in graphs]


def compare(directory: Path, rounds: int) -> Comparison:
    """Both sides in turn, `rounds` times; the files are read once before, so that none is cold."""
    ranks = ranks_of(directory)
    for kernel, graph in ranks:
        kernel.read_bytes()
        graph.read_bytes()
    audit = [sys.executable, "-m", "mkcov_action", "check", str(directory)]
    method = str(Path(__file__).with_name("seed_method.py"))
    seed = [[sys.executable, method, str(kernel), str(graph)] for kernel, graph in ranks]
    runs: list[tuple[Measurement, Measurement]] = []
    for number in range(rounds):
        print(f"round {number + 1} of {rounds} …", file=sys.stderr)
        runs.append((checked(measure([audit]), {0, 1}), checked(measure(seed), {0})))
    mkcov, method_runs = [run[0] for run in runs], [run[1] for run in runs]
    return Comparison(len(ranks), ranks[0][1].stat().st_size, mkcov, method_runs)


def checked(measurement: Measurement, allowed: set[int]) -> Measurement:
    """The measurement, unless a process failed: mkcov's 1 is a verdict, anything else is no audit."""
    if not allowed.issuperset(measurement.statuses):
        sys.exit(f"a measured process failed: exit statuses {measurement.statuses}")
    return measurement


def table(comparison: Comparison) -> str:
    """Medians of both sides and their ratio."""
    (fast, slow), (small, large) = comparison.seconds(), comparison.peaks()
    size = comparison.task_graph_bytes / MEGABYTE
    return "\n".join(
        [
            f"{comparison.ranks} ranks of {size:.0f} MB each, median of {len(comparison.mkcov)} rounds",
            f"{'':14}{'mkcov check':>14}{'json.load':>14}{'ratio':>8}",
            f"{'wall time':14}{fast:>12.2f} s{slow:>12.2f} s{fast / slow:>8.2f}",
            f"{'peak memory':14}{small / MEGABYTE:>11.0f} MB{large / MEGABYTE:>11.0f} MB{small / large:>8.2f}",
        ]
    )


def readme_block(comparison: Comparison) -> str:
    """The README's sentence: ratios only, since seconds belong to one machine."""
    (fast, slow), (small, large) = comparison.seconds(), comparison.peaks()
    return (
        f"{comparison.ranks} ranks of {comparison.task_graph_bytes / MEGABYTE:.0f} MB each: "
        f"**{fast / slow:.2f}** of the time and **{small / large:.2f}** of the memory "
        f"(median of {len(comparison.mkcov)} alternating rounds, memory summed over the process tree)."
    )


if __name__ == "__main__":
    sys.exit(main())
