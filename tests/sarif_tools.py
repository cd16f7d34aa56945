"""Judges of SARIF that are not ours, and what it takes to ask them.

Microsoft's multitool holds the 2.1.0 schema and the rules that GitHub and the specification give to
producers; it comes from npm into build/. sarif-tools reads a file as a user of it does.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from mkcov_action.report import Report
from mkcov_action.reporters import sarif

BUILD = Path(__file__).resolve().parent.parent / "build"
MULTITOOL = "@microsoft/sarif-multitool-linux"
VERSION = "5.7.0"  # its rules change with it

Object = dict[str, Any]


class Complaint(NamedTuple):
    """What the multitool has against a file."""

    rule: str
    level: str
    text: str


def rendered(report: Report, **options: Any) -> Object:
    """The report as SARIF, read back."""
    log: Object = json.loads(sarif.render(report, **options))
    return log


def run_of(report: Report, **options: Any) -> Object:
    """The one run of the report as SARIF."""
    (run,) = rendered(report, **options)["runs"]
    return dict(run)


@cache
def schema() -> Draft202012Validator:
    """What judges by the JSON schema of SARIF 2.1.0."""
    text = (_multitool() / "sarif-2.1.0.json").read_text(encoding="utf-8-sig")
    return Draft202012Validator(json.loads(text))


def complaints(text: str, directory: Path) -> list[Complaint]:
    """What the multitool says of a file with that text, under all its rules and GitHub's.

    Its exit status says nothing, and a file that it skips has no complaints: its own report tells.
    """
    directory.mkdir(parents=True, exist_ok=True)
    file, output = directory / "in.sarif", directory / "out.sarif"
    file.write_text(text, encoding="utf-8")
    choices = ["--rule-kind", "Sarif;Ghas", "--level", "Error;Warning;Note", "--log", "ForceOverwrite"]
    ran = subprocess.run(
        [_multitool() / "Sarif.Multitool", "validate", file, *choices, "--output", output],
        env={
            **os.environ,
            "DOTNET_EnableDiagnostics": "0",  # leaves pipes in the directory for temporary files
            "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1",  # works without the ICU libraries
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 files scanned" in ran.stdout, ran.stdout[-500:] + ran.stderr
    (run,) = json.loads(output.read_text(encoding="utf-8-sig"))["runs"]
    assert run["invocations"][0]["executionSuccessful"], run["invocations"]
    assert run["results"], "no file is without a complaint: this is one that the multitool cannot read"
    return [_complaint(result) for result in run["results"]]


def _complaint(result: Object) -> Complaint:
    message = result["message"]
    text = f"{message.get('id', '')} {message.get('arguments', message.get('text'))}"
    return Complaint(result["ruleId"], result.get("level", "warning"), text)


def summary(file: Path) -> dict[str, int]:
    """How many results of each level sarif-tools counts in a file."""
    if not find_spec("sarif"):
        pytest.skip("sarif-tools is not installed: pip install sarif-tools")
    ran = subprocess.run(
        [sys.executable, "-m", "sarif", "summary", file], capture_output=True, text=True, check=True
    )
    return {level: int(number) for level, number in re.findall(r"^(\w+): (\d+)$", ran.stdout, re.MULTILINE)}


# --- messages -------------------------------------------------------------------------------------

# A link as viewers find it that know the escapes (SARIF 2.1.0 §3.11.6), and as simple ones do.
_LINK = re.compile(r"(?<!\\)((?:\\\\)*)\[((?:[^\\\[\]]|\\.)*)\]\(([^)]*)\)")
_SIMPLE_LINK = re.compile(r"\[[^\]]*\]\(([^)]*)\)")


def links(text: str) -> list[tuple[str, str]]:
    """The links of a plain text message: what is shown and where each leads."""
    return [(unescaped(match[2]), match[3]) for match in _LINK.finditer(text)]


def simple_targets(text: str) -> list[str]:
    """Where the links lead for a viewer that knows no escapes."""
    return _SIMPLE_LINK.findall(text)


def unescaped(text: str) -> str:
    """A plain text message without its links as a viewer shows it."""
    return re.sub(r"\\([\\\[\]])", r"\1", text)


def strings(value: Any) -> Iterator[str]:
    """Every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings(inner)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def structure(value: Any) -> Any:
    """A JSON value with every text and number replaced by its kind."""
    if isinstance(value, dict):
        return {key: structure(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [structure(item) for item in value]
    return type(value).__name__


# --- the multitool --------------------------------------------------------------------------------


def _multitool() -> Path:
    """The directory of the multitool, installed by the first test that asks."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip(f"{MULTITOOL} runs on Linux on x86-64")
    prefix = BUILD / "sarif-multitool"
    prefix.mkdir(parents=True, exist_ok=True)
    directory = prefix / "node_modules" / MULTITOOL
    with (prefix / "lock").open("w") as lock:  # tests run in several processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "Sarif.Multitool").is_file():
            _install(prefix)
    (directory / "Sarif.Multitool").chmod(0o755)  # what its install script would do
    return directory


def _install(prefix: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not there to install {MULTITOOL}")
    options = ["--no-save", "--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund"]
    ran = subprocess.run(
        [npm, "install", "--prefix", prefix, "--cache", prefix / "cache", *options, f"{MULTITOOL}@{VERSION}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        reason = f"npm could not install {MULTITOOL}@{VERSION}: {ran.stderr.strip()[-300:]}"
        # In CI nobody would see that the judge stayed away.
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
