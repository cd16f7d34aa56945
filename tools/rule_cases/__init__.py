"""The fixtures of every rule: small graphs that must be silent (ok) or yield their golden (bad)."""

from __future__ import annotations

from tools.rule_cases import artifacts, dispatch, memory, order, ranks, wiring
from tools.rule_cases.case import CASES, Case

__all__ = ["CASES", "Case", "artifacts", "dispatch", "memory", "order", "ranks", "wiring"]
