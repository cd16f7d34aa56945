"""The workflows that docs/github-action.md offers to copy, as texts: to lint and to run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tests.conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "github-action.md"
ACTION = "OWNER/mkcov-action@v1"
CODEGEN = "Generate the megakernel"
UPLOAD = "Upload SARIF"

_BLOCK = re.compile(
    r"^<!-- (?P<kind>\w+): (?P<name>[\w-]+) -->\n```yaml\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(kind: str = "workflow") -> dict[str, str]:
    """The page's complete YAML blocks by name: those that stand below `<!-- kind: name -->`."""
    found = [match for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")) if match["kind"] == kind]
    assert found, f"{PAGE.name} has no block of the kind {kind}"
    assert len({match["name"] for match in found}) == len(found), "two blocks have one name"
    return {match["name"]: match["text"] for match in found}


def steps(workflow: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of all jobs, in order."""
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


def with_steps(text: str, replaced: Mapping[str, Mapping[str, Any]]) -> str:
    """The workflow with the bodies of the named steps replaced; their name, id and condition stay.

    Every name must be there: a step that was renamed must not be run as it is.
    """
    # YAML 1.1 takes the key `on` for a boolean.
    workflow = {"on" if key is True else key: value for key, value in yaml.safe_load(text).items()}
    missing = set(replaced)
    for step in steps(workflow):
        name = step.get("name", "")
        if name in replaced:
            missing.discard(name)
            kept = {key: value for key, value in step.items() if key in {"name", "id", "if"}}
            step.clear()
            step.update(kept, **replaced[name])
    assert not missing, f"no such step: {', '.join(sorted(missing))}"
    return yaml.safe_dump(workflow, sort_keys=False)
