"""Finding artifacts: every naming, nothing from outside, and nothing passed over in silence."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from mkcov_action.artifacts import Discovery, GraphFiles, discover, nearby
from mkcov_action.config import Config


def found(tmp_path: Path, *paths: str, **settings: object) -> Discovery:
    settings.setdefault("root", tmp_path)
    return discover(Config(paths=tuple(str(tmp_path / path) for path in paths or ("gen",)), **settings))  # type: ignore[arg-type]


def touch(directory: Path, *names: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        (directory / name).write_bytes(b"")
    return directory


def shown(graph: GraphFiles) -> list[tuple[int | str | None, ...]]:
    return [
        (rank.rank, *(file.uri if file else None for file in (rank.kernel, rank.task_graph)))
        for rank in graph.ranks
    ]


@pytest.mark.parametrize(
    "kernel, task_graph, rank",
    [
        ("kernel_3.cu", "task_graph_3.json", 3),
        ("test_rank3.cu", "task_graph_rank3.json", 3),
        ("test.cu", "task_graph.json", None),
    ],
)
@pytest.mark.parametrize("suffix", ["", ".xz", ".gz"])
def test_each_naming_and_compression_is_a_rank(
    tmp_path: Path, kernel: str, task_graph: str, rank: int | None, suffix: str
) -> None:
    touch(tmp_path / "gen", kernel + suffix, task_graph + suffix)
    (graph,) = found(tmp_path).graphs
    assert shown(graph) == [(rank, f"gen/{kernel}", f"gen/{task_graph}")]


def test_ranks_come_in_the_order_of_numbers_and_other_files_are_left_alone(tmp_path: Path) -> None:
    names = [
        f"{stem}_{rank}.{end}" for rank in (10, 2) for stem, end in (("kernel", "cu"), ("task_graph", "json"))
    ]
    touch(
        tmp_path / "gen", *names, "kernel_x.cu", "kernel_1.cu.bak", "mykernel_1.cu", "task_graph_1.json.zip"
    )
    (graph,) = found(tmp_path).graphs
    assert [rank.rank for rank in graph.ranks] == [2, 10]


def test_a_compressed_copy_beside_the_plain_file_is_named_and_not_read(tmp_path: Path) -> None:
    touch(tmp_path / "gen", "kernel_0.cu", "kernel_0.cu.xz", "task_graph_0.json")
    discovery = found(tmp_path)
    assert discovery.graphs[0].ranks[0].rivals == ()
    assert discovery.warnings == ["gen/kernel_0.cu.xz: not read, kernel_0.cu is there as well"]


def test_two_namings_of_one_rank_are_rivals(tmp_path: Path) -> None:
    touch(tmp_path / "gen", "kernel_0.cu", "task_graph_0.json", "test_rank0.cu")
    (rank,) = found(tmp_path).graphs[0].ranks
    assert [file.uri for file in rank.rivals] == ["gen/test_rank0.cu"]


def test_directories_are_graphs_of_their_own_or_ranks_of_one(tmp_path: Path) -> None:
    touch(tmp_path / "run" / "a", "kernel_0.cu", "task_graph_0.json")
    touch(tmp_path / "run" / "b", "kernel_1.cu", "task_graph_1.json")
    apart = found(tmp_path, "run/a", "run/b", "run/a/")
    assert [(graph.graph, len(graph.ranks)) for graph in apart.graphs] == [("run/a", 1), ("run/b", 1)]
    joined = found(tmp_path, "run/a", "run/b", one_graph=True)
    assert [(graph.graph, [rank.rank for rank in graph.ranks]) for graph in joined.graphs] == [
        ("run", [0, 1])
    ]


def test_one_rank_in_two_joined_directories_is_a_rival(tmp_path: Path) -> None:
    touch(tmp_path / "a", "kernel_0.cu", "task_graph_0.json")
    touch(tmp_path / "b", "kernel_0.cu", "task_graph_0.json")
    (graph,) = found(tmp_path, "a", "b", one_graph=True).graphs
    assert [file.uri for file in graph.ranks[0].rivals] == ["b/kernel_0.cu", "b/task_graph_0.json"]


def test_only_the_wanted_ranks_are_taken_and_absent_ones_stay_visible(tmp_path: Path) -> None:
    touch(tmp_path / "gen", *(f"kernel_{rank}.cu" for rank in range(4)))
    (graph,) = found(tmp_path, ranks=(1, 7)).graphs
    assert shown(graph) == [(1, "gen/kernel_1.cu", None), (7, None, None)]


def test_a_link_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    outside = touch(tmp_path / "outside", "kernel_0.cu") / "kernel_0.cu"
    gen = touch(tmp_path / "gen", "task_graph_0.json", "kernel_1.cu", "task_graph_1.json")
    (gen / "kernel_0.cu").symlink_to(outside)
    discovery = found(tmp_path)
    (failure,) = discovery.failures
    assert failure.message.startswith("gen/kernel_0.cu: refused")


def test_a_link_within_the_directory_and_a_linked_directory_are_fine(tmp_path: Path) -> None:
    gen = touch(tmp_path / "gen", "real.cu", "task_graph_0.json")
    (gen / "kernel_0.cu").symlink_to("real.cu")
    (tmp_path / "link").symlink_to(gen)
    discovery = found(tmp_path, "link")
    assert not discovery.failures
    assert shown(discovery.graphs[0]) == [(0, "gen/kernel_0.cu", "gen/task_graph_0.json")]


def test_a_negative_rank_is_refused(tmp_path: Path) -> None:
    touch(tmp_path / "gen", "kernel_-1.cu", "kernel_0.cu", "task_graph_0.json")
    assert [failure.message for failure in found(tmp_path).failures] == [
        "gen/kernel_-1.cu: a rank cannot be negative"
    ]


@pytest.mark.parametrize("given", ["missing", "file", "loop", "nul\0byte"])
def test_an_unusable_path_is_a_failure(tmp_path: Path, given: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    discovery = found(tmp_path, given)
    assert len(discovery.failures) == 1
    assert discovery.graphs == []


def test_outside_the_root_names_keep_only_the_directory(tmp_path: Path) -> None:
    touch(tmp_path / "x" / "gen", "kernel_0.cu")
    touch(tmp_path / "y" / "gen", "kernel_0.cu")
    (tmp_path / "root").mkdir()
    discovery = found(tmp_path, "x/gen", "y/gen", root=tmp_path / "root")
    assert [graph.ranks[0].kernel.uri for graph in discovery.graphs if graph.ranks[0].kernel] == [
        "gen/kernel_0.cu",
        "gen/kernel_0.cu",
    ]
    labels = [graph.graph for graph in discovery.graphs]
    assert len(set(labels)) == 2
    assert not any(str(tmp_path) in label for label in labels)
    assert len(discovery.warnings) == 1


def test_uris_are_percent_encoded(tmp_path: Path) -> None:
    touch(tmp_path / "a b:c%é", "kernel_0.cu")
    (graph,) = found(tmp_path, "a b:c%é").graphs
    assert graph.ranks[0].kernel
    assert graph.ranks[0].kernel.uri == "a%20b%3Ac%25%C3%A9/kernel_0.cu"


@pytest.mark.parametrize("suffix, compress", [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_opening_gives_the_plain_bytes(tmp_path: Path, suffix: str, compress: object) -> None:
    gen = touch(tmp_path / "gen")
    (gen / f"kernel_0.cu{suffix}").write_bytes(compress(b"text"))  # type: ignore[operator]
    kernel = found(tmp_path).graphs[0].ranks[0].kernel
    assert kernel
    with kernel.open() as stream:
        assert stream.read() == b"text"


@pytest.mark.parametrize("kind", ["directory", "fifo", "dangling", "loop"])
def test_what_is_no_regular_file_cannot_be_opened_and_never_hangs(tmp_path: Path, kind: str) -> None:
    path = touch(tmp_path / "gen") / "kernel_0.cu"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("nowhere" if kind == "dangling" else "kernel_0.cu")
    kernel = found(tmp_path).graphs[0].ranks[0].kernel
    assert kernel
    with pytest.raises(OSError, match=r"directory|regular|symbolic|No such"), kernel.open():
        pass


def test_directories_nearby_that_hold_artifacts_are_named(tmp_path: Path) -> None:
    touch(tmp_path / "here" / "deep" / "down", "kernel_0.cu.xz")
    touch(tmp_path / "sibling", "task_graph.json")
    touch(tmp_path / "here" / "nothing", "a.txt")
    assert nearby(tmp_path / "here") == [tmp_path / "sibling", tmp_path / "here" / "deep" / "down"]
