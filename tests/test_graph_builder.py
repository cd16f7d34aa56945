"""What the graph builder writes is a task graph in the generator's grammar, and clean."""

from __future__ import annotations

import gzip
import json
import lzma
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from click.testing import CliRunner

from tests.graph_checker import Rank, all_faults, load
from tools.build_fixtures import GLM_LAYERS, GRAPHS, build
from tools.builder import BuilderError, GraphBuilder, Tensor, Tile, decoder
from tools.builder.decoder import AllReduce, Attention, Rotary, Sizes
from tools.builder.forms import FORMS
from tools.graph_builder import main

SMALL = Sizes(batch=2, tiles=3, requests=2)


def read(builders: list[GraphBuilder]) -> list[Rank]:
    return [load(builder.kernel_text(), builder.task_graph_text()) for builder in builders]


def laid_out(text: str) -> bool:
    return text == json.dumps(json.loads(text), indent=2, sort_keys=True)


def chain(operators: int = 3, *, tiles: int = 4) -> tuple[GraphBuilder, list[Tensor]]:
    """A chain of layers over scratch tensors, which the tests below bend."""
    graph = GraphBuilder()
    source = graph.model("source", (4, 32))
    tensors = [source, *(graph.scratch(f"stage_{index}", (4, 32)) for index in range(operators))]
    for index in range(operators):
        graph.operator("TASK_IDENTITY", [tensors[index]], [tensors[index + 1]], grid=tiles)
    return graph, tensors


# --- decoders are clean ---------------------------------------------------------------------------


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("rotary", get_args(Rotary))
@pytest.mark.parametrize("all_reduce", get_args(AllReduce))
@pytest.mark.parametrize("attention", get_args(Attention))
def test_every_decoder_is_clean(
    attention: Attention, all_reduce: AllReduce, rotary: Rotary, ranks: int
) -> None:
    built = decoder(
        layers=2, ranks=ranks, attention=attention, all_reduce=all_reduce, rotary=rotary, sizes=SMALL
    )
    assert all_faults(read(built)) == []


@pytest.mark.parametrize("attention", get_args(Attention))
def test_finer_edges_and_one_request_are_clean(attention: Attention) -> None:
    built = decoder(layers=3, ranks=2, attention=attention, sizes=Sizes(batch=1, tiles=4, splits=3))
    assert all_faults(read(built)) == []


def test_ranks_differ_only_in_the_slices_that_they_put_and_their_ids() -> None:
    def plain(rank: Rank) -> Any:
        for task in rank.tasks:
            for event in ("dependent_event", "trigger_event"):
                task[event] &= ~(0xFFFF << 32)
            for tensor in task["outputs"] or []:
                tensor["offset"] *= not tensor["base_ptr"].endswith("_buffer")
        return rank.graph

    one, two = read(decoder(ranks=2, all_reduce="put"))
    assert one.kernel == two.kernel
    assert one.graph != two.graph
    assert plain(one) == plain(two)


def test_unwired_tables_are_attached_and_read_by_nothing() -> None:
    for wired in (True, False):
        (rank,) = read(decoder(wired=wired))
        named = {tensor["base_ptr"] for task in rank.tasks[2:] for _, _, tensor in rank.slots(task)}
        assert rank.declared - named == (set() if wired else {"rope_cos", "rope_sin"})


def test_a_wider_decoder_has_the_tasks_asked_for_and_few_events() -> None:
    (builder,) = decoder(layers=4, tasks=20_000)
    plan = builder.plan()
    assert 20_000 <= plan.tasks < 22_000
    assert len(plan.events) < 500
    graph = builder.task_graph()
    assert len(graph["all_tasks"]) == plan.tasks
    assert graph["all_events"][1]["last_task_id"] == plan.tasks


# --- the checker is awake -------------------------------------------------------------------------

Change = Callable[[list[dict[str, Any]], list[dict[str, Any]]], object]

PLANTED: dict[str, tuple[Change, str]] = {
    "too few triggers": (lambda _, events: events[4].update(num_triggers=1), "of 1 triggers"),
    "an edge to an earlier event": (
        lambda tasks, _: [task.update(dependent_event=3) for task in tasks if task["task_type"] == 269],
        "read before it is written",
    ),
    "an offset beyond the end": (
        lambda tasks, _: tasks[-1]["inputs"][0].update(offset=1 << 20),
        "argmax_part_value on rank 0 is left",
    ),
    "two tasks on one tile": (
        lambda tasks, _: tasks[-2]["outputs"][0].update(offset=0),
        "ARGMAX_PARTIAL_SM100 races ARGMAX_PARTIAL_SM100",
    ),
    "other metadata": (lambda tasks, _: tasks[9].update(request_id=7), "task 9: metadata"),
    "a trigger lost": (lambda tasks, _: tasks[5].update(trigger_event=3), "no end event waits"),
    "a cycle": (lambda tasks, events: tasks[2].update(dependent_event=len(events) - 2), "never ends"),
    "another range": (lambda _, events: events[5].update(last_task_id=3), "event 5"),
    "an empty list": (lambda tasks, _: tasks[1].update(inputs=[]), "should be null"),
}


@pytest.mark.parametrize("fault", PLANTED)
def test_the_checker_sees_planted_faults(fault: str) -> None:
    change, expected = PLANTED[fault]
    (builder,) = decoder(sizes=Sizes(tiles=2))
    builder.patch_graph(lambda graph: change(graph["all_tasks"], graph["all_events"]))
    found = all_faults(read([builder]))
    assert any(expected in text for text in found), found


def test_the_checker_sees_a_reduction_that_reads_its_own_rank_too_early() -> None:
    """The order that upstream's put and reduction lack: a put tells its target only."""

    def build(rank: int) -> GraphBuilder:
        graph = GraphBuilder(rank, world_size=2)
        source, weight = graph.model("source", (2, 16)), graph.model("weight", (16, 16))
        partial, total = graph.scratch("partial", (2, 16)), graph.scratch("total", (2, 16))
        buffer = graph.symmetric("buffer", (2, 2, 16))
        graph.operator("TASK_LINEAR", [source, weight], [partial], grid=2)
        graph.operator("TASK_NVSHMEM_ALLGATHER_STRIDED_PUT", [partial], [buffer], grid=2, shares=2)
        graph.operator("TASK_REDUCE", [partial, buffer], [total], grid=2, shares=2)
        return graph

    found = all_faults(read([build(0), build(1)]))
    assert len(found) == 4
    for rank in (0, 1):
        assert f"partial on rank {rank} is read before it is written (2)" in found
        assert f"partial on rank {rank}: LINEAR races REDUCE (2)" in found


# --- the text is the generator's ------------------------------------------------------------------


def test_the_task_graph_is_laid_out_as_json_dumps_would() -> None:
    for builder in (*decoder(ranks=2, all_reduce="put"), *decoder(attention="paged", wired=False)):
        assert laid_out(builder.task_graph_text())
    assert laid_out(GraphBuilder().task_graph_text())


def test_a_patched_graph_is_laid_out_the_same() -> None:
    (plain,), (patched,) = decoder(), decoder()
    patched.patch_graph(lambda _: None)
    assert patched.task_graph_text() == plain.task_graph_text()


@pytest.fixture
def real(corpus: Path) -> Callable[[str], Rank]:
    """Reads a rank of a real graph."""

    def open_rank(graph: str) -> Rank:
        kernel = lzma.decompress((corpus / graph / "kernel_0.cu.xz").read_bytes()).decode()
        text = lzma.decompress((corpus / graph / "task_graph_0.json.xz").read_bytes()).decode()
        assert laid_out(text)
        return load(kernel, text)

    return open_rank


REAL = ["qwen3-8b-hopper-2layers", "qwen3-8b-blackwell-2layers", "qwen3-8b-hopper-2layers-tp2"]
DEEPSEEK = "deepseek-v3-2layers-tp2"


def shapes(kernel: str) -> set[str]:
    """The kinds of lines outside bodies: names and figures blanked."""
    lines = (line for line in kernel.splitlines() if not line.startswith("   "))
    return {re.sub(r'"\w+"|(?<=[*&( ])\w+(?=[;,) ])|\b\w+(?= = )|TASK_\w+|\d+', "X", line) for line in lines}


def test_kernels_have_no_line_that_the_generator_does_not_write(real: Callable[[str], Rank]) -> None:
    known = set().union(*(shapes(real(graph).kernel) for graph in (*REAL, DEEPSEEK)))
    for builder in (*decoder(ranks=2), *decoder(attention="paged")):
        assert shapes(builder.kernel_text()) - known == set()


@pytest.mark.parametrize("graph", [*REAL, DEEPSEEK])
def test_forms_have_the_numbers_slots_and_divisions_of_real_graphs(
    graph: str, real: Callable[[str], Rank]
) -> None:
    rank = real(graph)
    for task in rank.tasks[2:]:
        form = FORMS[f"TASK_{rank.names[task['task_type']]}"]
        assert form.number == task["task_type"]
        assert len(task["inputs"] or []) == len(form.inputs)
        assert len(task["outputs"] or []) == len(form.outputs)
        metadata = {"request=x", "expert=x", "offset=linear", "request=y kv=x", "request=y kv=x merge=z"}
        assert form.metadata in metadata


def test_a_real_layer_built_again_has_the_same_tasks(real: Callable[[str], Rank]) -> None:
    """The first layers of a real graph, from the shapes in its Python: equal but for event ids."""
    graph = GraphBuilder()
    ids, table = graph.model("input_token", (8, 1), "int64"), graph.model("embed_tokens", (151936, 4096))
    hidden, normed = graph.scratch("embed_out", (8, 4096)), graph.scratch("rmsnorm_out", (8, 4096))
    norm = graph.model("layer_0_input_layernorm", (4096,))
    sources = {
        f"layer_0_{part}_proj": (rows, 4096) for part, rows in zip("qkv", (4096, 1024, 1024), strict=True)
    }
    weight = graph.shuffled("layer_0_qkv_proj", sources, groups=8)
    qkv, attended = graph.scratch("attn_in", (8, 6144)), graph.scratch("attn_out", (8, 4096))
    caches = [graph.model(f"layer_0_{part}_cache", (64, 128, 8, 128)) for part in "kv"]
    norms = [graph.model(f"layer_0_{part}_norm", (128,)) for part in "qk"]
    tables = [graph.model(f"{part}_position_embedding", (4096, 128)) for part in ("cos", "sin")]
    graph.operator("TASK_EMBEDDING", [ids, table], [hidden], waits_for=())
    graph.operator("TASK_RMS_NORM_HOPPER", [hidden, norm], [normed], grid=8)
    graph.operator("TASK_LINEAR_SM100", [normed, weight], [qkv], grid=96)
    inputs = [qkv, *caches, *norms, *tables]
    graph.operator("TASK_ATTN_SM100", inputs, [attended], grid=(1, 8), shares=8)
    built, original = graph.task_graph(), real("qwen3-8b-blackwell-2layers")
    ours, theirs = built["all_tasks"], original.tasks[: len(built["all_tasks"])]
    for task in ours[-8:] + theirs[-8:]:
        del task["trigger_event"]  # of the last layer: its consumers are not built
    assert ours == theirs
    assert built["all_events"][2:-1] == original.events[2 : len(built["all_events"]) - 1]
    copies = [line for line in original.kernel.splitlines() if "Memcpy2D" in line][:3]
    assert [line for line in graph.kernel_text().splitlines() if "Memcpy2D" in line] == copies


# --- the low level --------------------------------------------------------------------------------


def test_bodies_that_are_equal_share_a_variant() -> None:
    graph = GraphBuilder()
    wide, narrow = graph.model("wide", (4, 64)), graph.model("narrow", (4, 32))
    outs = [graph.scratch(f"out_{index}", tensor.shape) for index, tensor in enumerate((wide, narrow, wide))]
    made = [
        graph.operator("TASK_IDENTITY", [s], [o]) for s, o in zip((wide, narrow, wide), outs, strict=True)
    ]
    assert [operator.variant for operator in made] == [0, 1, 0]
    assert graph.kernel_text().count("TASK_IDENTITY && task_desc->variant_id ==") == 2


def test_nullptr_slots_and_the_flags_that_go_with_them() -> None:
    (rank,) = read(decoder(attention="paged", wired=False))
    attention = next(task for task in rank.tasks if task["task_type"] == 257)
    null = {"base_ptr": "nullptr", "data_type": 999, "dims": [], "offset": 0, "strides": []}
    assert attention["inputs"][5:] == [null, null]
    arguments = [line.strip(" ,") for line in rank.body(attention).splitlines()]
    at = arguments.index("task_desc->task_metadata.request_id")
    assert arguments[at + 1 : at + 3] == ["true", "false"]


def test_ignored_slots_are_not_named_by_the_body() -> None:
    graph, (source, *_) = chain(0)
    weight, out = graph.model("weight", (32, 32)), graph.scratch("out", (4, 32))
    slots = [source, weight, source]
    graph.operator("TASK_LINEAR_WITH_RESIDUAL_SM100", slots, [out], ignores=["i2"], waits_for=())
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", [source, out], [out], ignores=["i0"])
    first, second = load(graph.kernel_text(), graph.task_graph_text()).branches.values()
    assert "input_ptrs[2]" not in first
    assert first.endswith("nullptr);")
    assert "input_ptrs[0]" not in second


def test_a_bare_number_is_what_the_dispatcher_compares_with() -> None:
    graph, (source, out) = chain(1)
    graph.operator(296, [out, source], [out])
    assert "task_desc->task_type == 296 && task_desc->variant_id == 0" in graph.kernel_text()
    graph.operator("TASK_OF_A_FORK", [out], [out], number=297)
    assert "task_desc->task_type == TASK_OF_A_FORK &&" in graph.kernel_text()
    with pytest.raises(BuilderError, match="TASK_OF_ANOTHER is no task type of Mirage's"):
        graph.operator("TASK_OF_ANOTHER", [out], [out])


def test_a_fork_may_append_inputs_to_a_known_type() -> None:
    before, after = (read(decoder(rotary=rotary))[0] for rotary in ("none", "gather"))
    for rank, slots in ((before, 4), (after, 6)):
        gather = next(task for task in rank.tasks if task["task_type"] == 278)
        assert rank.names[278] == "MLA_KV_GATHER_SM100"
        assert len(gather["inputs"]) == slots
        assert {slot for _, slot, _ in rank.slots(gather)} == set(range(slots))
    assert "static_cast<const bfloat16*>(task_desc->input_ptrs[5])" in after.kernel


def test_oddities_can_be_planted() -> None:
    graph, (_, out) = chain(1)
    ghost = graph.undeclared("ghost", (4, 32))
    graph.operator("TASK_IDENTITY", [ghost], [out], dispatch=False)
    graph.branch("TASK_SILU_MUL", "    kernel::silu_mul();", variant=3)
    graph.raw_declaration("char *odd = (char*)(0x7f00);", 'all_tensors["odd"] = odd;')
    graph.patch_graph(lambda task_graph: task_graph["all_tasks"][2].update(is_tail_task=True))
    graph.patch_kernel(lambda text: text.replace("num_gpus = 1", "num_gpus = 8"))
    rank = load(graph.kernel_text(), graph.task_graph_text())
    assert set(rank.branches) == {("TASK_IDENTITY", 0), ("TASK_SILU_MUL", 3)}
    assert rank.tasks[-1]["variant_id"] == 1
    assert rank.tasks[-1]["inputs"][0]["base_ptr"] == "ghost"
    assert rank.declared == {"source", "stage_0", "odd"}
    assert rank.tasks[2]["is_tail_task"]
    assert "assert(num_gpus = 8);" in rank.kernel


def test_names_that_look_like_the_templates_come_through() -> None:
    graph = GraphBuilder()
    names = ["100%", "INPUTS", "%d OUTPUTS", 'TYPE "quoted"', "ünïcode\n"]
    tensors = [graph.undeclared(name, (8,)) for name in names]
    graph.operator("TASK_OF_A_FORK", tensors, tensors, number=300)
    task = graph.task_graph()["all_tasks"][2]
    assert [tensor["base_ptr"] for tensor in task["inputs"]] == names
    assert [tensor["base_ptr"] for tensor in task["outputs"]] == names


def test_tiles_can_be_overridden() -> None:
    graph, (source, out) = chain(1)
    odd: list[Tensor | Tile] = [
        source.tile(0, offset=64, dims=(1, 99)),
        source.whole(),
        source.view((64, 2), "uint16"),
    ]
    graph.operator("TASK_OF_A_FORK", odd, [out.tile(None, 1)], number=300, grid=(2, 4))
    last = graph.task_graph()["all_tasks"][-1]
    dims = [(tensor["dims"], tensor["offset"], tensor["data_type"]) for tensor in last["inputs"]]
    assert dims == [([1, 99], 64 + 2 * 64, 941), ([4, 32], 0, 941), ([64, 2], 0, 946)]
    assert (last["outputs"][0]["dims"], last["outputs"][0]["offset"]) == ([4, 8], 48)


def test_metadata_wraps_as_sixteen_bits_do() -> None:
    graph, (source, out) = chain(1)
    graph.operator("TASK_OF_A_FORK", [source], [out], number=300, grid=40_000)
    last = graph.task_graph()["all_tasks"][-1]
    assert last["request_id"] == 39_999 - (1 << 16)
    assert last["task_offset"] == last["expert_offset"] == 39_999 - (1 << 16)
    graph.operator("TASK_OF_A_FORK", [source], [out], number=300, metadata="request=3 kv=1 merge=5")
    last = graph.task_graph()["all_tasks"][-1]
    assert [last[name] for name in ("request_id", "kv_idx", "merge_task_offset")] == [3, 1, 5]
    with pytest.raises(BuilderError, match="names reqest; known"):
        graph.operator("TASK_OF_A_FORK", [source], [out], number=300, metadata="reqest=x")


def test_a_fork_of_the_graph_interleaves_its_branches() -> None:
    graph, tensors = chain(1)
    outs = [graph.scratch(f"branch_{index}", (4, 32)) for index in range(3)]
    root = graph.operators[0]
    left, right = (
        graph.operator("TASK_IDENTITY", [tensors[1]], [out], grid=4, shares=2, waits_for=root)
        for out in outs[:2]
    )
    graph.operator("TASK_ELEMENTWISE_ADD_SM100", outs[:2], [outs[2]], grid=4, waits_for=(left, right))
    assert graph.task_ids(left) == [6, 7, 10, 11]
    assert graph.task_ids(right) == [8, 9, 12, 13]
    assert all_faults(read([graph])) == []


def test_operators_that_wait_for_nothing_come_first() -> None:
    graph, _ = chain(1, tiles=2)
    source, out = graph.model("other", (4, 32)), graph.scratch("apart", (4, 32))
    graph.operator("TASK_IDENTITY", [source], [out], grid=2, waits_for=())
    assert graph.task_graph()["first_tasks"] == [2, 3, 4, 5]
    assert all_faults(read([graph])) == []


def test_an_empty_graph_has_the_runtime_s_own_tasks_and_events() -> None:
    graph = GraphBuilder(rank=3, world_size=4).task_graph()
    assert [task["task_type"] for task in graph["all_tasks"]] == [0, 10]
    assert [event["event_type"] for event in graph["all_events"]] == [911, 903, 910]
    assert graph["first_tasks"] is None


def fresh(graph: GraphBuilder) -> list[Tensor]:
    return [graph.undeclared("fresh", (8,))]


REFUSED: dict[str, Callable[[GraphBuilder], object]] = {
    "triggers one event": lambda graph: (
        graph.operator("TASK_SAMPLING_SM100", fresh(graph), waits_for=graph.operators[::2]),
        graph.plan(),
    ),
    "has no block": lambda graph: graph.operator("TASK_SAMPLING_SM100", fresh(graph), grid=0),
    "has no axis 1 to divide": lambda graph: graph.operator("TASK_IDENTITY", fresh(graph)),
    "source is declared twice": lambda graph: graph.model("source", (1,)),
    "unknown data type 'bf17'": lambda graph: graph.model("other", (1,), "bf17"),
    "different widths": lambda graph: graph.shuffled("fused", {"a": (4, 8), "b": (4, 16)}, groups=2),
    "rank 2 is not one of 2": lambda _: GraphBuilder(2, 2),
    "needs a layer and a rank": lambda _: decoder(layers=0),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_built_is_refused(message: str) -> None:
    graph, _ = chain(3)
    with pytest.raises(BuilderError, match=message):
        REFUSED[message](graph)


def test_a_put_that_nobody_waits_for_is_refused() -> None:
    graph = GraphBuilder(0, 2)
    source, buffer = graph.model("source", (2, 16)), graph.symmetric("buffer", (2, 2, 16))
    put = graph.operator("TASK_NVSHMEM_ALLGATHER_STRIDED_PUT", [source], [buffer])
    with pytest.raises(BuilderError, match="must wait for a put"):
        graph.plan()
    local = graph.operator("TASK_IDENTITY", [source], [graph.scratch("out", (2, 16))], waits_for=())
    graph.operator("TASK_REDUCE", [source, buffer], [graph.scratch("sum", (2, 16))], waits_for=(put, local))
    with pytest.raises(BuilderError, match="one event cannot tell both"):
        graph.plan()


# --- fixtures and command line --------------------------------------------------------------------


def content(path: Path) -> bytes:
    """What a file holds, whatever version of the compressor wrote it; broken files hold nothing."""
    data = path.read_bytes()
    if path.suffix == ".xz":
        try:
            return lzma.decompress(data)
        except lzma.LZMAError:
            return b""
    return gzip.decompress(data) if path.suffix == ".gz" else data


def fixture(directory: Path) -> list[Rank]:
    kernels = sorted(directory.glob("kernel_*"))
    graphs = sorted(directory.glob("task_graph_*"))
    return [
        load(content(kernel).decode(), content(graph).decode())
        for kernel, graph in zip(kernels, graphs, strict=True)
    ]


def test_fixtures_are_what_a_fresh_build_writes(repository: Path, tmp_path: Path) -> None:
    fresh = {path.relative_to(tmp_path): content(path) for path in build(tmp_path)}
    root = repository / "fixtures"
    on_disk = {
        path.relative_to(root): content(path)
        for path in root.rglob("*")
        if path.is_file() and not path.name.startswith("expected.")
    }
    assert on_disk == fresh


@pytest.mark.parametrize("name", GRAPHS)
def test_fixtures_are_clean_and_small(repository: Path, name: str) -> None:
    directory = repository / "fixtures" / name
    assert all_faults(fixture(directory)) == []
    assert sum(path.stat().st_size for path in directory.iterdir()) < 200_000


@pytest.mark.parametrize(
    ("state", "references", "consumers"), [("before", 0, []), ("after", 156, [278, 296])]
)
def test_glm_has_the_published_counts(
    repository: Path, state: str, references: int, consumers: list[int]
) -> None:
    (rank,) = fixture(repository / "fixtures" / "glm" / state)
    for table in ("rope_cos", "rope_sin"):
        assert table in rank.declared
        readers = [
            task["task_type"]
            for task in rank.tasks
            for tensor in task["inputs"] or []
            if tensor["base_ptr"] == table
        ]
        assert len(readers) == references
        assert sorted(set(readers)) == consumers
        assert all(readers.count(number) == GLM_LAYERS for number in consumers)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], ["kernel_0.cu", "task_graph_0.json"]),
        (["--naming", "test"], ["task_graph.json", "test.cu"]),
        (
            ["--naming", "test_rank", "--ranks", "2", "--compress", "gz"],
            [f"{name}{rank}.{kind}.gz" for name, kind in (("task_graph_rank", "json"), ("test_rank", "cu"))
             for rank in (0, 1)],
        ),
        (["--compress", "xz"], ["kernel_0.cu.xz", "task_graph_0.json.xz"]),
    ],
)  # fmt: skip
def test_the_command_names_files_as_mirage_does(tmp_path: Path, options: list[str], files: list[str]) -> None:
    status, output = run(str(tmp_path / "out"), *options)
    assert (status, sorted(path.name for path in (tmp_path / "out").iterdir())) == (0, files)
    assert "tasks and" in output


def test_equal_options_write_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert run(str(tmp_path / name), "--compress", "gz", "--ranks", "2", "--unwired")[0] == 0
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two")
    )
    assert one == two


def test_the_command_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    status, output = run(str(tmp_path), "--naming", "test", "--ranks", "2")
    assert (status, "several ranks would overwrite each other" in output) == (2, True)
    (tmp_path / "taken").write_text("")
    status, output = run(str(tmp_path / "taken" / "below"))
    assert (status, "cannot write to" in output) == (1, True)
    assert run(str(tmp_path), "--layers", "0")[0] == 2
