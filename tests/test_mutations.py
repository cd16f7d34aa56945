"""One fault planted at a time, at many seeded sites of clean graphs: the rule that names it fires, and no other.

Real graphs where they are (../shared/corpus), built ones everywhere.
"""

from __future__ import annotations

import copy
import json
import lzma
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.finding import Severity
from tools.builder import decoder
from tools.builder.decoder import Sizes

CORPUS = Path(__file__).parents[2] / "shared" / "corpus"
REAL = [
    name
    for name in ("qwen3-8b-hopper-2layers", "qwen3-8b-blackwell-2layers", "qwen3-0.6b-hopper")
    if (CORPUS / name).is_dir()
]
BUILT = ["built-mla", "built-paged"]
SITES = 6


@dataclass(slots=True)
class Artifacts:
    """Both halves of one rank, to be edited."""

    kernel: str
    tasks: list[dict[str, Any]]
    document: dict[str, Any]

    def operands(self, side: str = "inputs") -> list[dict[str, Any]]:
        return [tensor for task in self.tasks for tensor in task[side] or ()]

    def declared(self, form: str) -> list[str]:
        """The names declared in one form: `char` for attached and shuffled, `void` for buffers."""
        return re.findall(rf"^  {form} \*(\w+)(?: =|;)", self.kernel, re.MULTILINE)

    def references(self) -> dict[str, Counter[str]]:
        return {
            side: Counter(tensor["base_ptr"] for tensor in self.operands(side))
            for side in ("inputs", "outputs")
        }

    def replace(self, old: str, new: str, side: str) -> None:
        for tensor in self.operands(side):
            if tensor["base_ptr"] == old:
                tensor["base_ptr"] = new


@cache
def _texts(name: str) -> tuple[str, str]:
    if name in BUILT:
        kind: Any = name.removeprefix("built-")
        graph = decoder(layers=6, attention=kind, sizes=Sizes(tiles=4))[0]
        return graph.kernel_text(), graph.task_graph_text()
    return tuple(
        lzma.decompress((CORPUS / name / file).read_bytes()).decode()
        for file in ("kernel_0.cu.xz", "task_graph_0.json.xz")
    )  # type: ignore[return-value]


def artifacts_of(name: str) -> Artifacts:
    kernel, graph = _texts(name)
    document = json.loads(graph)
    return Artifacts(kernel, document["all_tasks"], document)


Fault = Callable[[Artifacts, random.Random], str | None]
"""Plants a fault and returns the tensor that it is about; None where the graph has no site."""

FAULTS: dict[str, Fault] = {}
EXPECTED: dict[str, set[str]] = {}


def fault(*rules: str) -> Callable[[Fault], Fault]:
    def register(plant: Fault) -> Fault:
        name = plant.__name__.replace("_", " ")
        FAULTS[name], EXPECTED[name] = plant, set(rules)
        return plant

    return register


@fault("MK104")
def declaration_dropped(graph: Artifacts, dice: random.Random) -> str | None:
    used = graph.references()["inputs"]
    name = dice.choice([name for name in graph.declared("char") if used[name]])
    graph.kernel = re.sub(rf'\n  all_tensors\["{name}"\] = {name};', "", graph.kernel)
    return name


@fault("MK102")
def attached_and_not_passed(graph: Artifacts, dice: random.Random) -> str | None:
    """A layer takes its neighbour's weight."""
    pairs = [
        (a, b)
        for a in graph.declared("char")
        if (b := a.replace("layer_1_", "layer_0_")) != a and "cache" not in a
    ]
    used = graph.references()["inputs"]
    mine, neighbours = dice.choice([pair for pair in pairs if all(used[name] for name in pair)])
    graph.replace(mine, neighbours, "inputs")
    return mine


@fault("MK103")
def reader_of_another_buffer(graph: Artifacts, dice: random.Random) -> str | None:
    """A reader is pointed at a buffer that nothing writes; what it should read is then named with it."""
    refs = graph.references()
    read = [name for name in graph.declared("void") if refs["inputs"][name] and refs["outputs"][name]]
    old = dice.choice(read)
    line = f"  void *lost;\n  CUDA_CHECK(cudaMalloc(&lost, {allocation(graph, old)}));\n"
    graph.kernel = graph.kernel.replace(
        f"  void *{old};", f'{line}  all_tensors["lost"] = lost;\n  void *{old};'
    )
    graph.replace(old, "lost", "inputs")
    return "lost"


def allocation(graph: Artifacts, name: str) -> str:
    found = re.search(rf"cudaMalloc\(&{name}, (\d+)\)", graph.kernel)
    assert found
    return found.group(1)


@fault("MK109")
def reader_dropped(graph: Artifacts, dice: random.Random) -> str | None:
    """A writer is pointed at a new buffer beside the one that is read and still written by another."""
    refs = graph.references()
    written = [
        name for name in graph.declared("void") if len(writers(graph, name)) > 1 and refs["inputs"][name]
    ]
    if not written:
        return None
    old = dice.choice(written)
    task = dice.choice(writers(graph, old))
    line = '  void *lost;\n  CUDA_CHECK(cudaMalloc(&lost, 64));\n  all_tensors["lost"] = lost;\n'
    graph.kernel = graph.kernel.replace(f"  void *{old};", f"{line}  void *{old};")
    for tensor in task["outputs"]:
        if tensor["base_ptr"] == old:
            tensor["base_ptr"] = "lost"
    return "lost"


def writers(graph: Artifacts, name: str) -> list[dict[str, Any]]:
    return [
        task for task in graph.tasks if any(tensor["base_ptr"] == name for tensor in task["outputs"] or ())
    ]


@fault("MK106")
def slot_set_to_null(graph: Artifacts, dice: random.Random) -> str | None:
    """One operator's weight, in all its tasks."""
    norms = [task for task in graph.tasks if len(task["inputs"] or ()) == 2 and task["outputs"]]
    types = Counter(task["task_type"] for task in norms)
    number = dice.choice(sorted(types))
    chosen = dice.choice([task for task in norms if task["task_type"] == number])
    name: str = chosen["inputs"][1]["base_ptr"]
    null = {"base_ptr": "nullptr", "data_type": 999, "dims": [], "offset": 0, "strides": []}
    for task in norms:
        if task["task_type"] == number and task["inputs"][1]["base_ptr"] == name:
            task["inputs"][1] = copy.deepcopy(null)
    return name


@fault("MK112")
def copy_shortened(graph: Artifacts, dice: random.Random) -> str | None:
    copies = list(
        re.finditer(
            r"cudaMemcpy2DAsync\(reinterpret_cast<void \*>\((\w+) \+ \d+\), \d+, [^,]+, \d+, \d+, (\d+),",
            graph.kernel,
        )
    )
    if not copies:
        return None
    chosen = dice.choice(copies)
    start, end = chosen.span(2)
    graph.kernel = f"{graph.kernel[:start]}{int(chosen.group(2)) - 1}{graph.kernel[end:]}"
    return chosen.group(1)


@fault("MK204")
def metadata_edited(graph: Artifacts, dice: random.Random) -> str | None:
    task = dice.choice(graph.tasks[2:])
    field = dice.choice(["request_id", "expert_offset", "task_offset"])
    task[field] = (task[field] + 1 + dice.randrange(1000)) & 0x7FFF
    return ""


@fault("MK108")
def two_norms_swapped_in_one_layer(graph: Artifacts, dice: random.Random) -> str | None:
    layers = sorted({int(n) for n in re.findall(r"\*layer_(\d+)_q_norm", graph.kernel)})
    if len(layers) < 6:
        return None
    layer = dice.choice(layers[2:-2])
    one, two = f"layer_{layer}_q_norm", f"layer_{layer}_k_norm"
    for tensor in graph.operands():
        if tensor["base_ptr"] in (one, two):
            tensor["base_ptr"] = two if tensor["base_ptr"] == one else one
    return one


def findings_of(graph: Artifacts, directory: Path) -> list[tuple[str, str | None, str]]:
    (directory / "kernel_0.cu").write_text(graph.kernel)
    (directory / "task_graph_0.json").write_text(json.dumps(graph.document, indent=2))
    report = audit(Config(paths=(str(directory),), root=directory))
    assert report.failures == ()
    return [(f.rule, f.tensor, f.message) for f in report.findings if f.severity > Severity.NOTE]


@pytest.mark.parametrize("name", [*BUILT, *REAL])
def test_the_graphs_are_clean_before(name: str, tmp_path: Path) -> None:
    assert findings_of(artifacts_of(name), tmp_path) == []


@pytest.mark.parametrize("name", [*BUILT, *REAL])
@pytest.mark.parametrize("kind", FAULTS)
def test_a_planted_fault_is_named_and_nothing_else_is(kind: str, name: str, tmp_path: Path) -> None:
    planted = 0
    for site in range(SITES):
        graph = artifacts_of(name)
        tensor = FAULTS[kind](graph, random.Random(f"{kind} {name} {site}"))  # noqa: S311
        if tensor is None:
            pytest.skip("the graph has no site for this fault")
        found = findings_of(graph, tmp_path)
        assert {rule for rule, _, _ in found} == EXPECTED[kind], (kind, tensor, found)
        assert any(tensor in (subject or "") or tensor in message for _, subject, message in found), (
            tensor,
            found,
        )
        planted += 1
    assert planted == SITES
