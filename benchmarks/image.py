"""Measures the container image: its size over its base, and how fast mkcov starts in it.

    python -m benchmarks.image [IMAGE] [--rounds N] [--write-readme]

The engine is the one that `docker` finds; IMAGE was built there with `docker build -t mkcov .`, and
its base is there too. The start-up figure is `mkcov --version` over `python -c "import click"`, both
inside one container, alternating: the container's own start is not ours to improve.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tools.docs import replace_block

ROOT = Path(__file__).resolve().parent.parent
BASE = "python:3.12-slim"
MEGABYTE = 1_000_000

STARTS = """
import json, subprocess, sys, time
commands = [["mkcov", "--version"], ["python", "-c", "import click"]]
runs = []
for _ in range(int(sys.argv[1]) + 1):
    run = []
    for command in commands:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        run.append(time.perf_counter() - start)
    runs.append(run)
print(json.dumps(runs[1:]))
"""
"""Runs in the container; the first round only warms the disk's cache."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and, if asked, put the line into the README."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.image", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("image", nargs="?", default="mkcov", metavar="IMAGE")
    parser.add_argument("--rounds", type=int, default=20, help="starts of each command (default 20)")
    parser.add_argument("--write-readme", action="store_true", help="write the figures into README.md")
    options = parser.parse_args(arguments)
    line = sentence(size_over_base(options.image), startup_ratio(options.image, options.rounds))
    print(line)
    if options.write_readme:
        readme = ROOT / "README.md"
        readme.write_text(replace_block(readme.read_text(encoding="utf-8"), "image", line), encoding="utf-8")
    return 0


def size_over_base(image: str) -> int:
    """Bytes that the image's layers add to its base."""
    ours, base = json.loads(docker("image", "inspect", image, BASE))
    return int(ours["Size"]) - int(base["Size"])


def startup_ratio(image: str, rounds: int) -> float:
    """The median of `mkcov --version` over `python -c "import click"`."""
    runs = json.loads(
        docker(
            "run", "--rm", "--network", "none", "--entrypoint", "python3", image, "-c", STARTS, str(rounds)
        )
    )
    ratios: list[float] = [ours / theirs for ours, theirs in runs]
    return median(ratios)


def sentence(size: int, ratio: float) -> str:
    """The README's line: figures that do not belong to one machine."""
    return (
        f"The image adds **{size / MEGABYTE:.0f} MB** to `{BASE}`; `mkcov --version` takes **{ratio:.2f}** of the "
        'time of `python -c "import click"` in it.'
    )


def docker(*arguments: str) -> str:
    """A docker command's output."""
    command = ["docker", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
