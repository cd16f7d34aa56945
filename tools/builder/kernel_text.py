"""The kernel's text: declarations, then the dispatcher with a branch for each type and variant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tools.builder.operators import Placed

_SLOT = re.compile(r"(?P<const>const:)?(?P<side>[io])(?P<index>\d+)(?P<null>\?)?(?P<tma>\.tma)?")
_PREFIXES = {"m.": "task_desc->task_metadata.", "c.": "runtime_config."}
_FLAGS = {"qk_norm": slice(3, 5), "rope": slice(5, 7)}
"""The optional steps of attention, and the inputs that say whether they are taken."""


class Dispatcher:
    """Collects branches. Operators of one type whose bodies are equal share a variant."""

    def __init__(self) -> None:
        self._labels: dict[int, str] = {}
        self._variants: dict[int, dict[str, int]] = {}
        self._branches: dict[tuple[int, int], str] = {}

    def add(self, number: int, label: str, body: str, variant: int | None, *, dispatch: bool = True) -> int:
        """Returns the variant id of a body; one without a branch gets an id that no other has."""
        self._labels[number] = label
        known = self._variants.setdefault(number, {})
        key = body if dispatch else f"no branch: {body}"
        found = known.setdefault(key, len(known)) if variant is None else variant
        if dispatch:
            self._branches[number, found] = body
        return found

    def lines(self) -> Iterator[str]:
        """The dispatcher, in ascending order of type number and variant."""
        yield "__device__ __forceinline__"
        yield "void _execute_task(TaskDesc const* task_desc,"
        yield "                   RuntimeConfig const &runtime_config) {"
        for index, ((number, variant), body) in enumerate(sorted(self._branches.items())):
            condition = (
                f"task_desc->task_type == {self._labels[number]} && task_desc->variant_id == {variant}"
            )
            yield f"  {'else ' if index else ''}if ({condition}) {{"
            yield body
            yield ""
            yield "  }"
        yield "}"


def write_body(
    type_name: str,
    arguments: str,
    slots: tuple[Sequence[Placed], Sequence[Placed]],
    *,
    flags: Mapping[str, bool],
    ignores: Sequence[str],
) -> str:
    """A call of a kernel named after its type, instantiated for the sizes of its tiles.

    `slots` are the inputs and the outputs, of which the first ones' sizes are taken.

    Operators of one type with other tiles so get another text, and with it another variant.
    """
    inputs, outputs = slots
    sizes = [str(size) for slot in (*inputs[:1], *outputs[:1]) for size in slot.dims]
    null = [slot.tensor is None for slot in inputs]
    given = {name: not all(null[slots]) for name, slots in _FLAGS.items()} | dict(flags)
    texts = (_argument(token, given, ignores) for token in arguments.split())
    name = type_name.removeprefix("TASK_").lower()
    return (
        f"    kernel::{name}<{', '.join(['bfloat16', *sizes])}>(\n      "
        + ",\n      ".join(text for text in texts if text)
        + ");"
    )


def _argument(token: str, flags: Mapping[str, bool], ignores: Sequence[str]) -> str:
    """One argument's text; empty for a slot that the body leaves out."""
    if token in flags:
        return str(flags[token]).lower()
    if token[:2] in _PREFIXES:
        return _PREFIXES[token[:2]] + token[2:]
    slot = _SLOT.fullmatch(token)
    if not slot:
        return token
    if slot["side"] + slot["index"] in ignores:
        return "nullptr" if slot["null"] else ""
    side = "input" if slot["side"] == "i" else "output"
    field = f"{side}_tma_desc_ptrs[{slot['index']}][0]" if slot["tma"] else f"{side}_ptrs[{slot['index']}]"
    return f"static_cast<const bfloat16*>(task_desc->{field})" if slot["const"] else f"task_desc->{field}"


def write_kernel(world_size: int, declarations: Iterable[str], dispatcher: Dispatcher) -> str:
    """The whole text, as the generator orders it."""
    lines = [
        '#include "persistent_kernel.cuh"',
        "using namespace mirage::runtime;",
        "",
        "static void _init_persistent_kernel(std::map<std::string, void*> const &model_tensors) {",
        f"  assert(num_gpus = {world_size});",
        "  std::map<std::string, void*> all_tensors;",
        *(f"  {line}" for line in declarations),
        '  all_tensors["nullptr"] = nullptr;',
        "}",
        "",
        *dispatcher.lines(),
    ]
    return "\n".join(lines) + "\n"
