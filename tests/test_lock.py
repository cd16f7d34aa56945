"""The image's locks: complete, of this project, and made by tools/lock.py."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import sarif_om
from packaging.requirements import Requirement

from tools.lock import LEFT_OUT, MACHINES, merge, render

DIGEST = "0" * 64


def pins_of(path: Path) -> dict[str, tuple[str, list[str]]]:
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    pins = {}
    for line in text.splitlines():
        pin, *hashes = line.split()
        name, version = pin.split("==")
        pins[name] = (version, hashes)
    return pins


@pytest.mark.parametrize("lock", ["runtime", "build"])
def test_a_lock_fits_pyproject_and_names_every_wheel_by_its_hash(repository: Path, lock: str) -> None:
    project = tomllib.loads((repository / "pyproject.toml").read_text())
    asked = project["project"]["dependencies"] if lock == "runtime" else project["build-system"]["requires"]
    pins = pins_of(repository / "requirements" / f"{lock}.txt")
    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pins[requirement.name][0])
    for _, hashes in pins.values():
        assert 1 <= len(hashes) <= len(MACHINES)
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", item) for item in hashes)
    assert not LEFT_OUT.keys() & pins


def test_sarif_om_imports_nothing_that_is_left_out() -> None:
    sources = [path.read_text() for path in Path(sarif_om.__file__).parent.glob("*.py")]
    assert len(sources) > 50
    assert not re.findall(
        r"^\s*(?:import|from) (?:pbr|pkg_resources|setuptools)", "\n".join(sources), re.MULTILINE
    )


def report(version: str, digest: str = DIGEST, name: str = "Some_Name") -> dict[str, Any]:
    archive = {"archive_info": {"hashes": {"sha256": digest}}}
    return {"install": [{"metadata": {"name": name, "version": version}, "download_info": archive}]}


def test_wheels_of_all_machines_stand_under_one_pin() -> None:
    pins = merge([report("1.0"), report("1.0", "f" * 64), report("3", name="pbr")])
    assert pins == {"some-name==1.0": {DIGEST, "f" * 64}}
    last = render(pins, "project.dependencies").splitlines()[-3:]
    assert last == ["some-name==1.0 \\", f"    --hash=sha256:{DIGEST} \\", f"    --hash=sha256:{'f' * 64}"]


def test_machines_that_disagree_about_a_version_are_refused() -> None:
    with pytest.raises(SystemExit, match=r"some-name: wheels of 1\.0 on one machine and of 1\.1 on another"):
        merge([report("1.0"), report("1.1")])
