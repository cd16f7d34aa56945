"""One fault planted at a time into clean graphs: the rules that must name it do, and no other speaks up.

Real graphs where they are (../shared/corpus), built ones everywhere. `make detection` does the same at
many more sites.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from mkcov_action.audit import audit
from mkcov_action.config import Config
from mkcov_action.faults import FAULTS, Fault, RankArtifacts, Site
from mkcov_action.task_graph import INVALID_EVENT
from tools import detection

SITES = 3


@pytest.mark.parametrize("graph", detection.graphs())
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_named_and_nothing_else_is(fault: Fault, graph: str, tmp_path: Path) -> None:
    for site in range(SITES):
        outcome = detection.plant(fault, graph, site, tmp_path)
        if outcome is None:
            pytest.skip("the graph has no site for this fault")
        assert outcome.is_named(fault), outcome
        assert not outcome.stray(fault), outcome


@pytest.mark.parametrize(
    "fault", [fault for fault in FAULTS if fault.group == "wiring"], ids=lambda f: f.name
)
def test_a_fault_of_the_wiring_is_told_by_the_tensors_name(fault: Fault, tmp_path: Path) -> None:
    """The first word of what was planted is the tensor, or nullptr."""
    outcomes = [detection.plant(fault, graph, 0, tmp_path) for graph in detection.graphs()]
    assert any(outcomes)
    for outcome in outcomes:
        if outcome is not None:
            words = outcome.planted.split()
            names = {word.strip(",") for word in words if "_" in word or word == "lost"}
            assert any(name in message for name in names for message in outcome.messages), outcome


def broken(rank: RankArtifacts, dice: random.Random) -> None:
    """Edits some records in ways that the schema allows and no generator would."""
    records = [*rank.tasks, *rank.events]
    values = [0, 1, 2, 7, 255, 1 << 30, INVALID_EVENT, dice.randrange(200), 0x1E00 << 48 | 1]
    for record in dice.sample(records, k=min(len(records), 1 + dice.randrange(6))):
        for field in dice.sample(sorted(record), k=2):
            if isinstance(record[field], int):
                record[field] = dice.choice(values) & (0x7FFFFFFFFFFFFFFF if "event" in field else 0x7FFF)
            elif record[field]:
                record[field] = dice.sample(record[field], k=dice.randrange(len(record[field]))) or None


@pytest.mark.parametrize("graph", detection.BUILT)
def test_no_rule_crashes_on_a_graph_that_is_broken_in_several_ways(graph: str, tmp_path: Path) -> None:
    for seed in range(40):
        dice = random.Random(f"{graph} {seed}")  # noqa: S311
        ranks = detection.ranks_of(graph)
        for fault in dice.sample(FAULTS, k=dice.randrange(4)):
            fault.planted_at(Site(ranks, dice.choice(ranks), dice))
        broken(dice.choice(ranks), dice)
        for rank in ranks:
            rank.write(tmp_path)
        report = audit(Config(paths=(str(tmp_path),), root=tmp_path, workers=1))
        assert [failure for failure in report.failures if failure.internal] == [], seed


# Kinds that need what only some of the built graphs have: puts, all-reduces, the norms of query and key.
SPECIAL = {
    "tag lost",
    "put of one rank dropped",
    "puts of one rank swapped",
    "signals counted twice",
    "one team for all tiles",
    "two norms swapped in one layer",
}


def test_every_kind_has_sites_on_two_built_graphs_or_needs_what_one_has() -> None:
    for fault in FAULTS:
        planted = 0
        for graph in detection.BUILT:
            ranks = detection.ranks_of(graph)
            dice = random.Random(fault.name)  # noqa: S311
            planted += fault.planted_at(Site(ranks, ranks[0], dice)) is not None
        assert planted >= (1 if fault.name in SPECIAL else 2), fault.name


def test_before_anything_is_planted_the_graphs_are_clean() -> None:
    assert list(detection.false_alarms()) == []


def test_the_page_shows_every_kind(repository: Path) -> None:
    page = (repository / "docs" / "detection.md").read_text(encoding="utf-8")
    assert [fault.name for fault in FAULTS if f"| {fault.what} |" not in page] == []
    assert "**Missed:** none." in page
