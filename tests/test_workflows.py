"""Our workflows and those that the docs offer: clean under every linter, pinned, and true to action.yml."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.workflow_docs import ACTION, CODEGEN, PAGE, UPLOAD, blocks, steps, with_steps
from tools import docs

TOOLS = Path(sysconfig.get_path("scripts"))
WORKFLOWS = sorted((REPOSITORY / ".github" / "workflows").iterdir())
OURS = {path.stem: path.read_text(encoding="utf-8") for path in WORKFLOWS}
OFFERED = blocks()
PINNED = re.compile(r"uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+(?: #.*)?$")
LABELS = "self-hosted-runner:\n  labels: [gpu]\n"


def run(tool: str, *arguments: str | Path) -> str:
    """Everything that a linter prints; empty where it finds nothing."""
    done = subprocess.run(
        [TOOLS / tool, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout + done.stderr if done.returncode else ""


def zizmor(path: Path, persona: str = "regular") -> str:
    return run("zizmor", "--offline", "--quiet", "--persona", persona, "--strict-collection", path)


def actionlint(directory: Path, *paths: Path) -> str:
    config = directory / "actionlint.yaml"
    config.write_text(LABELS, encoding="utf-8")
    return run("actionlint", "-config-file", config, "-shellcheck=", "-pyflakes=", *paths)


def schema(name: str, *paths: Path) -> str:
    return run("check-jsonschema", "--builtin-schema", f"vendor.{name}", *paths)


def written(directory: Path, texts: dict[str, str], action: str) -> list[Path]:
    """The texts as workflow files of a repository, with `action` in place of the placeholder."""
    target = directory / ".github" / "workflows"
    target.mkdir(parents=True)
    for name, text in texts.items():
        (target / f"{name}.yml").write_text(text.replace(ACTION, action), encoding="utf-8")
    return sorted(target.iterdir())


def complaints(directory: Path, texts: dict[str, str]) -> str:
    """What the linters say of workflows from the docs.

    The action is pinned for zizmor, as the page asks for; for actionlint it is this checkout, so that
    inputs and outputs are held against action.yml.
    """
    pinned = written(directory / "pinned", texts, f"OWNER/mkcov-action@{'0' * 40} # v1.0.0")
    local = written(directory / "local", texts, "./")
    (directory / "local" / "action.yml").write_bytes((REPOSITORY / "action.yml").read_bytes())
    (directory / "local" / "Dockerfile").touch()
    (directory / "local" / ".git").mkdir()
    told = [zizmor(directory / "pinned"), actionlint(directory, *local), schema("github-workflows", *pinned)]
    return "".join(told)


def test_our_workflows_are_clean(tmp_path: Path) -> None:
    assert not zizmor(REPOSITORY / ".github", "pedantic")
    assert not zizmor(REPOSITORY / "action.yml", "pedantic")
    assert not actionlint(tmp_path, *WORKFLOWS)
    assert not schema("github-workflows", *WORKFLOWS)
    assert not schema("github-actions", REPOSITORY / "action.yml")
    assert not schema("dependabot", REPOSITORY / ".github" / "dependabot.yml")


def test_what_the_docs_offer_is_clean(tmp_path: Path) -> None:
    assert not complaints(tmp_path, OFFERED)


@pytest.mark.parametrize(
    "good, bad, complaint",
    [
        ("persist-credentials: false", "fetch-depth: 1", "artipacked"),
        ("run: ./generate.sh gen", "run: ./generate.sh ${{ github.head_ref }}", "template-injection"),
        ("path: gen\n", "paths: gen\n", 'input "paths" is not defined in action'),
        ("outputs.sarif-file }}", "outputs.sarif }}", 'property "sarif" is not defined'),
        ("timeout-minutes: 30", "timeout-minutes: soon", "soon"),
        ("runs-on: ubuntu-latest", "run-on: ubuntu-latest", "'runs-on' is a required property"),
    ],
)
def test_the_linters_see_what_is_wrong(tmp_path: Path, good: str, bad: str, complaint: str) -> None:
    text = OFFERED["after-codegen"]
    assert good in text
    assert complaint in complaints(tmp_path, {"broken": text.replace(good, bad)})


def test_the_gitlab_pipeline_is_clean(tmp_path: Path) -> None:
    for name, text in blocks("gitlab").items():
        path = tmp_path / f"{name}.yml"
        path.write_text(text, encoding="utf-8")
        assert not run("check-jsonschema", "--data-transform", "gitlab-ci", *_gitlab(path))
        path.write_text(text.replace("paths: [gen/]", "path: [gen/]"), encoding="utf-8")
        assert "artifacts" in run("check-jsonschema", "--data-transform", "gitlab-ci", *_gitlab(path))


def _gitlab(path: Path) -> tuple[str | Path, ...]:
    return ("--builtin-schema", "vendor.gitlab-ci", path)


def test_every_yaml_block_of_the_page_is_one_of_them() -> None:
    fences = PAGE.read_text(encoding="utf-8").count("```yaml")
    assert fences == len(OFFERED) + len(blocks("gitlab"))


def unpinned(text: str) -> Iterable[str]:
    """The lines that use something by a name that can move, or do not tell which version it is."""
    lines = (line.strip() for line in text.splitlines() if re.match(r"\s*(?:- )?uses:", line))
    return [line for line in lines if not PINNED.search(line) and "uses: ./" not in line]


@pytest.mark.parametrize("name", OURS)
def test_ours_use_nothing_that_can_move(name: str) -> None:
    assert not unpinned(OURS[name])


@pytest.mark.parametrize("name", OFFERED)
def test_the_docs_use_nothing_that_can_move_but_the_action(name: str) -> None:
    assert not unpinned(OFFERED[name].replace(f"uses: {ACTION}", "uses: ./"))


@pytest.mark.parametrize(
    "used", ["actions/checkout@v7", f"a/b@{'0' * 40}", f"a/b@{'0' * 39} # v1.0.0", "a/b"]
)
def test_what_can_move_is_seen(used: str) -> None:
    assert unpinned(f"      - uses: {used}\n")


@pytest.mark.parametrize("name", OURS | OFFERED)
def test_every_job_has_a_limit_and_permissions_of_its_own(name: str) -> None:
    workflow = yaml.safe_load((OURS | OFFERED)[name])
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert "permissions" in job
        assert "uses" in job or job["timeout-minutes"] <= 60


@pytest.mark.parametrize("name", OFFERED)
def test_the_docs_know_the_actions_inputs_and_outputs(name: str) -> None:
    action = yaml.safe_load((REPOSITORY / "action.yml").read_text(encoding="utf-8"))
    workflow = yaml.safe_load(OFFERED[name])
    ids = set()
    for step in steps(workflow):
        if step.get("uses") == ACTION:
            assert step["with"].keys() <= action["inputs"].keys()
            ids.add(step.get("id"))
    for step, output in re.findall(r"\bsteps\.([\w-]+)\.outputs\.([\w-]+)", OFFERED[name]):
        assert step in ids
        assert output in action["outputs"]


def test_the_page_is_what_make_docs_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == docs.action_page(REPOSITORY), "run `make docs`"


def test_the_page_follows_action_yml_and_the_pins() -> None:
    fields = {"path": {"description": "Where a|b\nand <c> lie."}, "ranks": {"description": "Which."}}
    table = (
        "| input | what it says |\n|---|---|\n| `path` | Where a\\|b and &lt;c> lie. |\n| `ranks` | Which. |"
    )
    assert docs.fields_table("input", fields) == table
    old, new = (f"      - uses: a/b@{digit * 40} # v{digit}.0.0\n" for digit in "12")
    other = f"      - uses: a/c@{'3' * 40} # v3.0.0\n"
    assert docs.repin(old + other, new) == new + other


def test_a_step_is_replaced_under_its_name_and_condition(tmp_path: Path) -> None:
    offered = OFFERED["after-codegen"]
    text = with_steps(offered, {CODEGEN: {"run": "cp -r demo gen"}, UPLOAD: {"run": "test -s mkcov.sarif"}})
    assert not schema("github-workflows", *written(tmp_path, {"replaced": text}, "./"))
    named = {step["name"]: step for step in steps(yaml.safe_load(text)) if "name" in step}
    assert named[CODEGEN] == {"name": CODEGEN, "run": "cp -r demo gen"}
    assert named[UPLOAD]["run"] == "test -s mkcov.sarif"
    assert "!cancelled()" in named[UPLOAD]["if"]
    with pytest.raises(AssertionError, match="no such step: gone"):
        with_steps(offered, {"gone": {}})
