"""The eight bytes of metadata of a task (mirage runtime_header.h, TaskDesc's union)."""

from __future__ import annotations

from collections.abc import Callable

from tools.builder.errors import BuilderError
from tools.builder.operators import Grid

Metadata = tuple[int, int, int, int]
"""request_id, kv_idx, merge_task_offset, and the low word: expert_offset and task_offset at once."""

_FIELDS = frozenset({"request", "kv", "merge", "expert", "offset"})


def read_rule(rule: str, grid: Grid) -> Callable[[Grid], Metadata]:
    """Reads a rule such as `request=x kv=z merge=0`; `linear` is the block's number, x fastest.

    All bytes start as ones. `request` and `kv` are the halves of the low word, which `expert` and
    `offset` write whole.
    """
    sources = dict(part.partition("=")[::2] for part in rule.split())
    wrong = sources.keys() - _FIELDS
    if wrong:
        raise BuilderError(f"metadata {rule!r} names {', '.join(sorted(wrong))}; known: {sorted(_FIELDS)}")

    def value(name: str, block: Grid, otherwise: int) -> int:
        source = sources.get(name)
        if source is None:
            return otherwise
        if source == "linear":
            return block[0] + grid[0] * (block[1] + grid[1] * block[2])
        return block["xyz".index(source)] if source in ("x", "y", "z") else int(source)

    def metadata(block: Grid) -> Metadata:
        word = value("kv", block, 0xFFFF) << 16 | value("request", block, 0xFFFF) & 0xFFFF
        word = value("offset", block, value("expert", block, word)) & 0xFFFFFFFF
        return _signed(word & 0xFFFF, 16), word >> 16, value("merge", block, -1), _signed(word, 32)

    return metadata


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value
