"""Cases of the rules about the files themselves (MK001 to MK008)."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

from tools.rule_cases.case import Small, case

# --- MK001 missing-artifact -----------------------------------------------------------------------


@case("missing-artifact", "bad")
def no_kernel(out: Path) -> None:
    Small.whole(0, 2).write(out)
    kernel, _ = Small.whole(1, 2).write(out)
    kernel.unlink()


@case("missing-artifact", "bad")
def no_task_graph(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out)
    task_graph.unlink()


@case("missing-artifact", "bad", "--ranks", "0,3")
def rank_asked_for(out: Path) -> None:
    Small.whole().write(out)


@case("missing-artifact", "ok")
def both_halves(out: Path) -> None:
    Small.whole().write(out)


# --- MK002 unaudited-ranks ------------------------------------------------------------------------


@case("unaudited-ranks", "bad")
def one_of_eight(out: Path) -> None:
    Small.whole(0, 8).write(out)


@case("unaudited-ranks", "ok")
def all_ranks(out: Path) -> None:
    for rank in range(2):
        Small.whole(rank, 2).write(out)


# --- MK003 malformed-json -------------------------------------------------------------------------


@case("malformed-json", "bad")
def truncated(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out)
    task_graph.write_text(task_graph.read_text()[:2000])


@case("malformed-json", "bad")
def repeated_key(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out)
    text = task_graph.read_text()
    task_graph.write_text(text.replace('"variant_id": 0', '"variant_id": 0,\n      "kv_idx": 7', 1))


@case("malformed-json", "bad")
def not_a_number(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out)
    task_graph.write_text(task_graph.read_text().replace('"offset": 0', '"offset": NaN', 1))


@case("malformed-json", "ok")
def one_line(out: Path) -> None:
    _, task_graph = Small.whole().write(out)
    task_graph.write_text(json.dumps(json.loads(task_graph.read_text()), separators=(",", ":")))


# --- MK004 schema-violation -----------------------------------------------------------------------


@case("schema-violation", "bad")
def type_is_text(out: Path) -> None:
    Small.whole(0, 2).write(out)
    graph = Small.whole(1, 2)
    graph.patch_graph(lambda data: data["all_tasks"][3].update(task_type="TASK_LINEAR_SM100"))
    graph.write(out)


@case("schema-violation", "bad")
def two_generations(out: Path) -> None:
    Small.whole(0, 2).write(out)
    graph = Small.whole(1, 2)
    graph.patch_graph(lambda data: data["all_tasks"][4].pop("kv_idx"))
    graph.write(out)


@case("schema-violation", "ok")
def newer_keys(out: Path) -> None:
    graph = Small.whole()
    graph.patch_graph(lambda data: [task.update(is_tail_task=False) for task in data["all_tasks"]])
    graph.patch_graph(lambda data: data.update(v2_smem_planner={"version": 1}))
    graph.write(out)


# --- MK005 unrecognised-kernel --------------------------------------------------------------------


@case("unrecognised-kernel", "bad")
def hand_written(out: Path) -> None:
    Small.whole(0, 2).write(out)
    kernel, _ = Small.whole(1, 2).write(out)
    kernel.write_text('// all_tensors["x"] = x;\n__global__ void kernel() {}\n')


@case("unrecognised-kernel", "ok")
def addresses_of_an_older_generator(out: Path) -> None:
    graph = Small.whole()
    graph.patch_kernel(
        lambda text: text.replace(
            'static_cast<char*>(model_tensors.at("embed_tokens"))', "(char*)(0x7f0a40000000)"
        )
    )
    graph.write(out)


# --- MK006 unknown-key ----------------------------------------------------------------------------


@case("unknown-key", "bad")
def keys_of_a_newer_generator(out: Path) -> None:
    for rank in range(2):
        graph = Small.whole(rank, 2)
        graph.patch_graph(lambda data: [task.update(is_tail_task=False) for task in data["all_tasks"]])
        graph.patch_graph(lambda data: data.update(v2_worker_task_queues=[[2], [3]]))
        graph.write(out)


@case("unknown-key", "ok")
def keys_of_april_2026(out: Path) -> None:
    Small.whole().write(out)


# --- MK007 unreadable-artifact --------------------------------------------------------------------


@case("unreadable-artifact", "bad")
def no_xz(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out)
    task_graph.unlink()
    (out / "task_graph_1.json.xz").write_bytes(b"PK\x03\x04 this is no xz\n")


@case("unreadable-artifact", "bad")
def cut_xz(out: Path) -> None:
    Small.whole(0, 2).write(out)
    _, task_graph = Small.whole(1, 2).write(out, compress="xz")
    task_graph.write_bytes(task_graph.read_bytes()[:-60])


@case("unreadable-artifact", "bad")
def directory(out: Path) -> None:
    Small.whole(0, 2).write(out)
    kernel, _ = Small.whole(1, 2).write(out)
    kernel.unlink()
    kernel.mkdir()
    (kernel / "kept.txt").write_text("a directory under an artifact's name\n")


@case("unreadable-artifact", "ok")
def compressed(out: Path) -> None:
    Small.whole(0, 2).write(out, compress="xz", compress_kernel="xz")
    Small.whole(1, 2).write(out, compress="gz", compress_kernel="gz")


# --- MK008 mislabelled-rank -----------------------------------------------------------------------


@case("mislabelled-rank", "bad")
def overwritten(out: Path) -> None:
    """Both ranks wrote into one directory: rank 1 holds rank 0's files."""
    Small.whole(0, 2).write(out)
    for path in sorted(out.iterdir()):
        (out / path.name.replace("0", "1")).write_bytes(path.read_bytes())


@case("mislabelled-rank", "bad")
def two_claims(out: Path) -> None:
    Small.whole().write(out)
    Small.whole().write(out, naming="test_rank")


@case("mislabelled-rank", "bad")
def ranks_of_two_runs(out: Path) -> None:
    Small.whole(0, 2).write(out)
    Small.whole(1, 2).write(out)
    kernel, _ = Small.whole(2, 3).write(out)
    kernel.write_text(kernel.read_text().replace("num_gpus = 3", "num_gpus = 1"))


@case("mislabelled-rank", "bad")
def world_beyond_all_bounds(out: Path) -> None:
    kernel, _ = Small.whole(0, 2).write(out)
    kernel.write_text(kernel.read_text().replace("num_gpus = 2", f"num_gpus = {10**19}"))


@case("mislabelled-rank", "ok")
def rank_from_the_content(out: Path) -> None:
    Small.whole(1, 2).write(out, naming="test")
    (out / "note.xz").write_bytes(lzma.compress(b"no artifact"))
