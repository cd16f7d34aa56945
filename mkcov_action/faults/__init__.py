"""Faults to plant into artifacts: proof that the gate can fail, one kind a function.

A fault knows the rules that must name it and the consequences that may be told beside them.
"""

from __future__ import annotations

from mkcov_action.faults import dispatch, memory, order, ranks, tiles, wiring
from mkcov_action.faults._fault import FAULTS, Fault, Plant
from mkcov_action.faults.artifacts import RankArtifacts, Site

__all__ = [
    "FAULTS",
    "Fault",
    "Plant",
    "RankArtifacts",
    "Site",
    "dispatch",
    "memory",
    "order",
    "ranks",
    "tiles",
    "wiring",
]
