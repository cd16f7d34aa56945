"""Writes the golden files: python -m tools.golden. Look at the difference before you commit it.

Every bad case of a rule has its findings in expected.json; the demonstration graphs have what a
terminal, a job summary and a workflow log show, and what `mkcov show` prints of them and, where the
corpus of real graphs lies beside the checkout, of these. `--check` changes nothing and fails where one is stale.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import chdir
from itertools import chain
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner, Result

from mkcov_action.commands import cli

ROOT = Path(__file__).resolve().parents[1] / "fixtures"
CORPUS = ROOT.parents[1] / "shared" / "corpus"
VIEWS = ROOT.parent / "tests" / "golden" / "show"
SHOWN = ("demo/unwired", "demo/wired", "glm/before", "glm/after")

_UNWIRED, _SMALL, _LARGE = "demo/unwired", "deepseek-v3-2layers", "deepseek-v3-61layers-tp8"
DEMO_VIEWS: Mapping[str, tuple[str, ...]] = {
    "demo-tensor.txt": (_UNWIRED, "--tensor", "attn_out"),
    "demo-dead-tensor.txt": (_UNWIRED, "--tensor", "rope_cos"),
    "demo-tensors.txt": (_UNWIRED, "--tensor", "layer_*", "--tensor", "rope_*"),
    "demo-task.txt": (_UNWIRED, "--task", "11"),
    "demo-event.txt": (_UNWIRED, "--event", "7"),
    "demo-operator.txt": (_UNWIRED, "--operator", "linear_sm100:0"),
    "demo-layer.txt": (_UNWIRED, "--layer", "1", "--rank", "1"),
    "demo-stats.txt": (_UNWIRED,),
    "demo-tensor.json": (_UNWIRED, "--tensor", "attn_out", "--json"),
    "demo-tensor.dot": (_UNWIRED, "--tensor", "attn_out", "--dot", "-"),
    "starved-event.txt": ("rules/trigger-count-mismatch/bad/counted-twice", "--event", "3"),
    "cycle.txt": ("rules/dependency-cycle/bad/layers-wait-for-each-other", "--task", "4", "--event", "4"),
    "not-launched.txt": ("rules/unreachable-task/bad/not-launched", "--task", "8", "--stats"),
    "invalid-event.txt": ("rules/invalid-event/bad/out-of-range", "--layer", "0", "--layer", "1"),
    "missing-dispatch.txt": ("rules/missing-dispatch/bad/variant-without-code", "--operator", "*"),
    "missing-slot.txt": ("rules/slot-out-of-range/bad/residual-not-passed", "--task", "4"),
    "starved-event.dot": ("rules/trigger-count-mismatch/bad/counted-twice", "--event", "3", "--dot", "-"),
}
"""Golden file -> the arguments of `mkcov show` in fixtures/."""

CORPUS_VIEWS: Mapping[str, tuple[str, ...]] = {
    "corpus-tensor.txt": (_SMALL, "--tensor", "rmsnorm_out"),
    "corpus-task.txt": (_SMALL, "--task", "5320"),
    "corpus-event.txt": (_SMALL, "--event", "51"),
    "corpus-event.dot": (_SMALL, "--event", "51", "--dot", "-"),
    "corpus-operator.txt": (_SMALL, "--operator", "quantize_fp8_sm100:0"),
    "corpus-layer.txt": (_SMALL, "--layer", "3"),
    "corpus-stats.txt": (_SMALL, "--stats"),
    "corpus-many-layers.txt": (_LARGE, "--stats", "--tensor", "rmsnorm_out", "--operator", "TENSOR_INIT"),
    "corpus-put.txt": ("qwen3-8b-hopper-2layers-tp2", "--operator", "*put*", "--rank", "1"),
}
"""The same in the corpus of real graphs."""


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


def shown(directory: Path, *arguments: str) -> str:
    """What `mkcov show` prints to standard output in a directory."""
    with chdir(directory):
        result = CliRunner().invoke(cli, ["show", *arguments])
    if result.exit_code:
        raise SystemExit(f"mkcov show {' '.join(arguments)}: {result.stderr}")
    return result.stdout


def view_goldens() -> Iterator[tuple[Path, str]]:
    """Every golden file of `mkcov show` with the text that belongs into it."""
    for name, arguments in DEMO_VIEWS.items():
        yield VIEWS / name, shown(ROOT, *arguments)
    for name, arguments in CORPUS_VIEWS.items() if CORPUS.is_dir() else ():
        yield VIEWS / name, shown(CORPUS, *arguments)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--check", "only_check", is_flag=True, help="Change nothing; fail if a file is stale.")
def main(*, only_check: bool) -> None:
    """Write the golden files below fixtures/ and tests/golden/."""
    stale = [
        (path, text)
        for path, text in chain(goldens(), view_goldens())
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        click.echo(f"{'stale' if only_check else 'written'}: {path.relative_to(ROOT.parent)}")
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    sys.exit(bool(stale and only_check))


if __name__ == "__main__":
    main()
