"""The fixture law: ok cases are silent, bad cases yield exactly their golden, for all rules together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.golden import ROOT, SHOWN, arguments_of, check, findings_of, goldens

CASES = sorted(ROOT.glob("rules/*/*/*"))
OK = [path for path in CASES if path.parent.name == "ok"]
BAD = [path for path in CASES if path.parent.name == "bad"]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def rules_of(directory: Path) -> set[tuple[str, str]]:
    return {(finding["name"], finding["severity"]) for finding in findings_of(directory)["findings"]}


@pytest.mark.parametrize("directory", [*OK, ROOT / "demo" / "wired", ROOT / "glm" / "after"], ids=name_of)
def test_an_ok_case_is_silent_at_error_and_warning(directory: Path) -> None:
    assert {found for found in rules_of(directory) if found[1] != "note"} == set()
    assert check(directory, directory, *arguments_of(directory), "--fail-on", "warning").exit_code == 0


@pytest.mark.parametrize("directory", BAD, ids=name_of)
def test_a_bad_case_names_its_rule_and_no_other_at_error_or_warning(directory: Path) -> None:
    found = rules_of(directory)
    rule = directory.parent.parent.name
    assert rule in {name for name, _ in found}
    assert {name for name, severity in found if severity != "note"} <= {rule}


@pytest.mark.parametrize("directory", BAD, ids=name_of)
def test_a_bad_case_yields_exactly_its_golden(directory: Path) -> None:
    assert findings_of(directory) == json.loads((directory / "expected.json").read_text())


def test_golden_files_are_what_is_shown() -> None:
    stale = [name_of(path) for path, text in goldens() if path.read_text(encoding="utf-8") != text]
    assert stale == []


@pytest.mark.parametrize("name", SHOWN)
def test_the_demonstrations_fail_unwired_and_pass_wired(name: str) -> None:
    expected = 1 if name in ("demo/unwired", "glm/before") else 0
    assert check(ROOT / name, ROOT.parent).exit_code == expected


def test_glm_reads_as_its_published_counts() -> None:
    """Built by us from the published counts: no reference before the fix, 156 for each table after."""
    before = (ROOT / "glm" / "before" / "expected.txt").read_text()
    after = (ROOT / "glm" / "after" / "expected.txt").read_text()
    types = "consumer_task_types=[278, 296] (TASK_MLA_KV_GATHER_SM100, TYPE_296)"
    for table in ("rope_cos", "rope_sin"):
        assert f"[MISSING-WIRING] {table}: input_refs=0\n" in before
        assert f"[OK] {table}: input_refs=156 {types}\n" in after
