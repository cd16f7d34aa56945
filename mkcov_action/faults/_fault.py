"""What a kind of fault is, and the list of all of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from mkcov_action.faults.artifacts import Site

Plant = Callable[[Site], str | None]
"""Edits the artifacts at a site that its dice choose; says what it did, or None where there is no site.

What it says holds the name of the tensor or operator that a finding must speak of.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One kind of fault: `named_by` are the rules that must report it, each of them; `also` those that may."""

    name: str
    group: str
    named_by: frozenset[str]
    also: frozenset[str]
    plant: Plant

    def planted_at(self, site: Site) -> str | None:
        """Plants it; says what it did, or None where the graph has no place for it.

        In a graph that has other faults already, as a table without events, a place cannot be looked for.
        """
        try:
            return self.plant(site)
        except (LookupError, TypeError, ValueError):
            return None

    @property
    def what(self) -> str:
        """What is planted, in a sentence: the first line of the function's docstring."""
        return (inspect.getdoc(self.plant) or self.name).partition("\n")[0].rstrip(".")


FAULTS: list[Fault] = []


def fault(*named_by: str, also: tuple[str, ...] = ()) -> Callable[[Plant], Plant]:
    """Registers a kind of fault; its function's name is its own, so that `_` becomes a blank."""

    def register(plant: Plant) -> Plant:
        group = plant.__module__.rpartition(".")[2]
        name = plant.__name__.replace("_", " ")
        FAULTS.append(Fault(name, group, frozenset(named_by), frozenset(also), plant))
        return plant

    return register
