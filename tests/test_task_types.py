from __future__ import annotations

import json
import lzma
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mkcov_action.kernel_source import read_kernel_source
from mkcov_action.task_types import (
    DATA_TYPE_BYTES,
    TASK_TYPE_NUMBERS,
    TASK_TYPES,
    Extent,
    OptionalUse,
    Slot,
    SlotUse,
    is_runtime_tensor,
    name_task_types,
    read_header,
)

Counts = dict[int, set[tuple[int, int]]]


def counts_of(named: Mapping[int, str]) -> Counts:
    roles = {number: TASK_TYPES[name] for number, name in named.items()}
    return {number: {(len(role.inputs), len(role.outputs))} for number, role in roles.items()}


def names(*short: str) -> list[str]:
    return [f"TASK_{name}" for name in short]


def slot(task_type: str, name: str) -> Slot:
    role = TASK_TYPES[f"TASK_{task_type}"]
    (found,) = (slot for slot in (*role.inputs, *role.outputs) if slot.name == name)
    return found


# --- the table ----------------------------------------------------------------------------------


def test_the_table_is_whole() -> None:
    assert len(TASK_TYPES) == len(TASK_TYPE_NUMBERS) == 81
    assert list(TASK_TYPE_NUMBERS) == sorted(TASK_TYPE_NUMBERS)
    assert set(TASK_TYPE_NUMBERS.values()) == set(TASK_TYPES)
    for name, role in TASK_TYPES.items():
        assert role.name == name
        assert re.fullmatch(r"TASK_[A-Z0-9_]+", name)
        for side in (role.inputs, role.outputs):
            assert len({slot.name for slot in side}) == len(side)


@pytest.mark.parametrize(
    ("name", "inputs", "outputs"),
    [
        ("TERMINATE", 0, 0),
        ("EMBEDDING", 2, 1),
        ("ATTENTION_1", 7, 1),
        ("LINEAR_WITH_RESIDUAL_SM100", 3, 1),
        ("PAGED_ATTENTION_SPLIT_KV_SM100", 7, 2),
        ("MOE_TOPK_SOFTMAX_SM100", 1, 3),
        ("MLA_PREFILL_SM100", 5, 0),
        ("MLA_KV_GATHER_SM100", 4, 0),
        ("MTP_ACCEPT_COMMIT", 3, 3),
        ("MTP_VERIFY_PROBABILISTIC", 5, 2),
        ("NVSHMEM_TILE_ALLREDUCE", 1, 1),
    ],
)
def test_slot_counts_are_the_generators(name: str, inputs: int, outputs: int) -> None:
    role = TASK_TYPES[f"TASK_{name}"]
    assert (len(role.inputs), len(role.outputs)) == (inputs, outputs)
    assert role.fits({(9, 9), (inputs, outputs)})
    assert not role.fits({(inputs, outputs + 1)})


def test_inputs_that_a_kernel_writes_are_marked() -> None:
    written = {
        (role.name, slot.name, slot.use)
        for role in TASK_TYPES.values()
        for slot in role.inputs
        if slot.use in {SlotUse.WRITE, SlotUse.UPDATE} and not slot.name.endswith("_cache")
    }
    assert written == {
        ("TASK_MOE_TOPK_SOFTMAX_SM100", "logits", SlotUse.UPDATE),
        ("TASK_MOE_TOPK_SIGMOID_SM100", "logits", SlotUse.UPDATE),
        ("TASK_TENSOR_INIT", "tensor", SlotUse.WRITE),
        ("TASK_MLA_PREFILL_SM100", "out", SlotUse.WRITE),
        ("TASK_MLA_KV_GATHER_SM100", "contiguous_kv", SlotUse.WRITE),
        ("TASK_MLA_KV_GATHER_SPLIT_SM100", "ckv_sep", SlotUse.WRITE),
        ("TASK_MLA_KV_GATHER_SPLIT_SM100", "kpe_sep", SlotUse.WRITE),
        ("TASK_MTP_PREPARE_VERIFY", "tokens", SlotUse.WRITE),
    }


def test_every_attention_updates_its_caches_and_may_lack_norm_and_rotary_tables() -> None:
    attention = [role for role in TASK_TYPES.values() if role.inputs and role.inputs[0].name == "qkv"]
    assert len(attention) == 7
    for role in attention:
        assert [slot.use for slot in role.inputs[1:3]] == [SlotUse.UPDATE] * 2
        assert [slot.pair for slot in role.inputs] == ["", "", "", "qk_norm", "qk_norm", "rope", "rope"]
        assert [slot.nullable for slot in role.inputs] == [False] * 3 + [True] * 4
    others = [slot for role in TASK_TYPES.values() if role not in attention for slot in role.inputs]
    assert not any(slot.nullable or slot.pair for slot in others)


def test_slots_without_access_accumulators_and_extents_are_marked() -> None:
    slots = [(role.name, slot) for role in TASK_TYPES.values() for slot in (*role.inputs, *role.outputs)]
    assert {(name, slot.name) for name, slot in slots if slot.use is SlotUse.DUMMY} == {
        ("TASK_TARGET_VERIFY_GREEDY", "out"),
        ("TASK_TENSOR_INIT", "dummy_input"),
        ("TASK_TENSOR_INIT", "dummy_output"),
    }
    accumulators = {name for name, slot in slots if slot.use is SlotUse.ACCUMULATE}
    assert accumulators == {"TASK_SPLITK_LINEAR_SWAPAB_HOPPER", "TASK_SPLITK_LINEAR_SM100"}
    assert [name for name, slot in slots if slot.extent is Extent.SLICE] == [
        "TASK_NVSHMEM_ALLGATHER_STRIDED_PUT"
    ]
    assert slot("LINEAR_SM100", "w").exact
    assert slot("ARGMAX_PARTIAL_SM100", "logits").exact
    assert not slot("EMBEDDING", "weight").exact
    assert not slot("PAGED_ATTENTION_HOPPER", "k_cache").exact
    assert not slot("QUANTIZE_FP8_SM100", "x_fp8").exact


def test_only_a_residual_on_other_ranks_or_ids_in_the_config_may_be_left_out() -> None:
    residual = slot("LINEAR_WITH_RESIDUAL_SM100", "residual")
    assert residual.may_be_unnamed(rank=1, config=())
    assert not residual.may_be_unnamed(rank=0, config=("tokens",))
    ids = slot("EMBEDDING", "ids")
    assert ids.may_be_unnamed(rank=0, config={"tokens", "step"})
    assert not ids.may_be_unnamed(rank=1, config={"qo_indptr_buffer"})
    assert slot("TENSOR_INIT", "dummy_input").may_be_unnamed(rank=0, config=())
    assert not slot("LINEAR_SM100", "x").may_be_unnamed(rank=1, config={"tokens"})
    optional = {role.name for role in TASK_TYPES.values() for slot in role.inputs if slot.optional_use}
    assert optional == {
        "TASK_EMBEDDING",
        "TASK_EMBEDDING_HOPPER",
        "TASK_LINEAR_SWAPAB_WITH_RESIDUAL_HOPPER",
        "TASK_LINEAR_WITH_RESIDUAL_SM100",
    }
    assert not OptionalUse.NEVER


def test_data_types_have_the_size_of_one_element() -> None:
    assert {DATA_TYPE_BYTES[number] for number in (930, 935, 936)} == {1}
    assert (DATA_TYPE_BYTES[941], DATA_TYPE_BYTES[950], DATA_TYPE_BYTES[965]) == (2, 4, 8)
    assert not DATA_TYPE_BYTES.keys() & {920, 925, 926, 999}


def test_runtime_tensors_are_those_that_runtime_config_carries() -> None:
    carried = (
        "input_token input_tokens output_token output_tokens step tokens all_tokens num_new_tokens new_token_nums "
        "prompt_lengths qo_indptr qo_indptr_buffer paged_kv_indptr_buffer paged_kv_indices_buffer "
        "paged_kv_indices_snapshot paged_kv_last_page_len_buffer"
    )
    assert all(map(is_runtime_tensor, carried.split()))
    others = "embed_tokens rope_cos mtp_tokens_buffer token step_size layer_0_k_cache input_token\n"
    assert not any(map(is_runtime_tensor, others.split(" ")))


# --- naming -------------------------------------------------------------------------------------

# SM100 as of 5162bfbb (October 2025): the same numbers mean other types in the table.
OCTOBER = {
    101: "TASK_EMBEDDING",
    118: "TASK_SILU_MUL",
    154: "TASK_RMS_NORM_HOPPER",
    251: "TASK_LINEAR_WITH_RESIDUAL_SM100",
    252: "TASK_LINEAR_SM100",
    253: "TASK_ATTN_SM100",
    254: "TASK_ARGMAX_REDUCE_SM100",
    255: "TASK_ARGMAX_PARTIAL_SM100",
}
# As of 5b86df9c (24 November 2025), with the all-gather's put of January 2026 at 199.
NOVEMBER = {
    101: "TASK_EMBEDDING",
    107: "TASK_REDUCE",
    154: "TASK_RMS_NORM_HOPPER",
    199: "TASK_NVSHMEM_ALLGATHER_STRIDED_PUT",
    252: "TASK_LINEAR_WITH_RESIDUAL_SM100",
    253: "TASK_LINEAR_SM100",
    257: "TASK_ATTN_SM100",
    263: "TASK_SAMPLING_SM100",
}
# A fork of the table that has types of its own between the known ones.
FORK = {
    101: "TASK_EMBEDDING",
    118: "TASK_SILU_MUL",
    129: "TASK_GLU",
    253: "TASK_LINEAR_SM100",
    296: "TASK_GLM",
}
FORK_COUNTS: Counts = {101: {(2, 1)}, 118: {(1, 1)}, 129: {(2, 1)}, 253: {(2, 1)}, 296: {(9, 0)}}


def nowhere_wrong(named: Mapping[int, str], truth: Mapping[int, str]) -> bool:
    return all(name in {truth[number], f"TYPE_{number}"} for number, name in named.items())


@pytest.mark.parametrize("enum", [OCTOBER, NOVEMBER, TASK_TYPE_NUMBERS], ids=["october", "november", "april"])
def test_the_order_of_the_branches_names_every_version(enum: Mapping[int, str]) -> None:
    dispatched = [name for number, name in enum.items() if number not in {0, 10}]
    assert name_task_types(counts_of(enum), dispatched) == enum


@pytest.mark.parametrize("enum", [OCTOBER, NOVEMBER])
def test_an_old_enum_is_never_misnamed_whatever_branches_are_missing(enum: Mapping[int, str]) -> None:
    for kept in range(len(enum) + 1):
        for dispatched in combinations(enum.values(), kept):
            assert nowhere_wrong(name_task_types(counts_of(enum), dispatched), enum)


@pytest.mark.parametrize("enum", [OCTOBER, NOVEMBER])
def test_an_old_enum_without_a_known_dispatcher_is_never_misnamed(enum: Mapping[int, str]) -> None:
    named = name_task_types(counts_of(enum), None)
    assert nowhere_wrong(named, enum)
    assert named[101] == "TASK_EMBEDDING"


def test_an_old_linear_with_residual_is_not_the_tables_split_k() -> None:
    assert name_task_types({251: {(3, 1)}}, None) == {251: "TYPE_251"}
    dispatched = names("LINEAR_WITH_RESIDUAL_SM100", "LINEAR_SM100")
    assert name_task_types({251: {(3, 1)}, 252: {(2, 1)}}, dispatched) == {
        251: dispatched[0],
        252: dispatched[1],
    }


def test_a_missing_branch_leaves_the_types_name_to_the_table() -> None:
    enum = dict(TASK_TYPE_NUMBERS)
    for number in enum.keys() - {0, 10}:
        dispatched = [name for other, name in enum.items() if other not in {0, 10, number}]
        assert name_task_types(counts_of(enum), dispatched) == enum


def test_unused_branches_disturb_nothing() -> None:
    enum = {number: TASK_TYPE_NUMBERS[number] for number in (101, 118, 119, 253, 259)}
    dispatched = [name for number, name in TASK_TYPE_NUMBERS.items() if number not in {0, 10}]
    assert name_task_types(counts_of(enum), dispatched) == enum


def test_a_forks_types_are_named_by_their_place() -> None:
    assert name_task_types(FORK_COUNTS, list(FORK.values())) == FORK
    without_silu = [name for name in FORK.values() if name != "TASK_SILU_MUL"]
    assert nowhere_wrong(name_task_types(FORK_COUNTS, without_silu), FORK)
    without_glu = [name for name in FORK.values() if name != "TASK_GLU"]
    assert name_task_types(FORK_COUNTS, without_glu) == FORK | {129: "TYPE_129"}
    assert name_task_types(FORK_COUNTS, None) == FORK | {129: "TYPE_129", 296: "TYPE_296"}


def test_tasks_that_lost_a_slot_keep_their_types_name() -> None:
    enum = {number: TASK_TYPE_NUMBERS[number] for number in (101, 116, 118, 119, 120)}
    dispatched = list(enum.values())
    assert name_task_types(counts_of(enum) | {116: {(5, 1)}}, dispatched) == enum
    assert name_task_types(counts_of(enum) | {116: {(5, 1), (7, 1)}}, dispatched) == enum
    assert name_task_types(counts_of(enum) | {116: {(5, 1)}}, None) == enum | {116: "TYPE_116"}


def test_a_place_does_not_outweigh_counts_that_only_the_table_explains() -> None:
    counts: Counts = {118: {(1, 1)}, 152: {(2, 1)}, 153: {(7, 1)}}
    dispatched = names("SILU_MUL", "LINEAR_WITH_RESIDUAL_HOPPER", "PAGED_ATTENTION_HOPPER")  # 151 unused
    expected = {118: "TASK_SILU_MUL", 152: "TASK_LINEAR_HOPPER", 153: "TASK_PAGED_ATTENTION_HOPPER"}
    assert name_task_types(counts, dispatched) == expected


def test_a_gap_that_does_not_add_up_is_left_unnamed() -> None:
    counts: Counts = {118: {(1, 1)}, 121: {(1, 1)}, 129: {(1, 1)}, 253: {(2, 1)}}
    named = name_task_types(counts, ["TASK_SILU_MUL", "TASK_FOO", "TASK_LINEAR_SM100"])
    assert named == {118: "TASK_SILU_MUL", 121: "TYPE_121", 129: "TYPE_129", 253: "TASK_LINEAR_SM100"}


def test_branches_out_of_order_anchor_only_what_agrees() -> None:
    counts: Counts = {101: {(2, 1)}, 118: {(1, 1)}, 253: {(2, 1)}}
    named = name_task_types(counts, names("LINEAR_SM100", "EMBEDDING", "SILU_MUL"))
    assert named == {101: "TASK_EMBEDDING", 118: "TASK_SILU_MUL", 253: "TYPE_253"}


def test_the_skeletons_numbers_are_the_same_in_all_versions() -> None:
    counts: Counts = {0: {(0, 0)}, 10: {(0, 0)}, 101: {(2, 1)}}
    named = name_task_types(counts, names("EMBEDDING"), {0: "TASK_X", 10: "TASK_Y"})
    assert named == {0: "TASK_TERMINATE", 10: "TASK_BEGIN_TASK_GRAPH", 101: "TASK_EMBEDDING"}


def test_a_branch_that_tells_its_number_names_that_number() -> None:
    counts: Counts = {101: {(2, 1)}, 295: {(2, 1)}, 296: {(2, 1)}, 297: {(2, 1)}}
    dispatched = ["TASK_EMBEDDING", "TASK_FOO", "TYPE_296", "TYPE_299", "TYPE_x", "TASK_BAR"]
    named = name_task_types(counts, dispatched)
    assert named == {101: "TASK_EMBEDDING", 295: "TASK_FOO", 296: "TYPE_296", 297: "TYPE_297"}


def test_a_header_outweighs_order_and_table() -> None:
    header = {118: "TASK_GLU", 253: "TASK_SILU_MUL", 999: "TASK_UNUSED"}
    counts: Counts = {101: {(2, 1)}, 118: {(9, 9)}, 253: {(1, 1)}}
    expected = {101: "TASK_EMBEDDING", 118: "TASK_GLU", 253: "TASK_SILU_MUL"}
    assert name_task_types(counts, names("EMBEDDING", "SILU_MUL", "GLU"), header) == expected
    assert name_task_types(counts, None, header) == expected
    taken = name_task_types({5: {(2, 1)}, 253: {(2, 1)}}, None, {5: "TASK_LINEAR_SM100"})
    assert taken == {5: "TASK_LINEAR_SM100", 253: "TYPE_253"}
    taken = name_task_types({5: {(2, 1)}, 253: {(2, 1)}}, names("LINEAR_SM100"), {5: "TASK_LINEAR_SM100"})
    assert taken == {5: "TASK_LINEAR_SM100", 253: "TYPE_253"}


@given(st.data())
def test_any_numbering_in_order_is_named_right(data: st.DataObject) -> None:
    pool = st.sampled_from([name for number, name in TASK_TYPE_NUMBERS.items() if number not in {0, 10}])
    dispatched = data.draw(st.lists(pool, unique=True, min_size=1))
    numbers = st.integers(11, 400)
    chosen = data.draw(st.lists(numbers, unique=True, min_size=len(dispatched), max_size=len(dispatched)))
    enum = dict(zip(sorted(chosen), dispatched, strict=True))
    assert name_task_types(counts_of(enum), dispatched) == enum


PAIRS = st.frozensets(st.tuples(st.integers(0, 8), st.integers(0, 3)), max_size=2)
SOME_NAMES = st.sampled_from([*TASK_TYPES, "TASK_FOO", "TASK_BAR", "TYPE_296", "TYPE_12", "TYPE_", ""])


@given(
    st.dictionaries(st.one_of(st.sampled_from(list(TASK_TYPE_NUMBERS)), st.integers()), PAIRS),
    st.none() | st.lists(SOME_NAMES),
    st.none() | st.dictionaries(st.integers(0, 310), SOME_NAMES),
)
def test_every_number_gets_one_name(
    counts: dict[int, frozenset[tuple[int, int]]], dispatched: list[str] | None, header: dict[int, str] | None
) -> None:
    named = name_task_types(counts, dispatched, header)
    assert named.keys() == counts.keys()
    if not header:
        assert len(set(named.values())) == len(named)


def test_real_graphs_are_named_right(corpus: Path) -> None:
    graphs = sorted(path for path in corpus.glob("*/task_graph_*.json.xz") if path.stat().st_size < 400_000)
    assert graphs
    for path in graphs:
        tasks: list[dict[str, Any]] = json.loads(lzma.decompress(path.read_bytes()))["all_tasks"]
        counts: Counts = {}
        for task in tasks:
            pair = (len(task["inputs"] or ()), len(task["outputs"] or ()))
            counts.setdefault(task["task_type"], set()).add(pair)
        kernel_path = path.with_name(path.name.replace("task_graph", "kernel").replace(".json", ".cu"))
        source, _ = read_kernel_source(lzma.decompress(kernel_path.read_bytes()))
        assert source is not None
        assert source.dispatcher is not None
        expected = {number: TASK_TYPE_NUMBERS[number] for number in counts}
        assert name_task_types(counts, source.dispatcher.type_names) == expected, path
        assert name_task_types(counts, None) == expected, path


def test_real_bodies_name_the_slots_of_their_role(corpus: Path) -> None:
    for path in sorted(corpus.glob("*/kernel_*.cu.xz")):
        rank = int(path.name.removeprefix("kernel_").split(".")[0])
        source, _ = read_kernel_source(lzma.decompress(path.read_bytes()))
        assert source is not None
        assert source.dispatcher is not None
        for operator, branch in source.dispatcher.branches.items():
            role = TASK_TYPES[operator.type_name]
            for slots, used in ((role.inputs, branch.inputs), (role.outputs, branch.outputs)):
                assert used is not None
                assert used <= set(range(len(slots)))
                unnamed = [slot for index, slot in enumerate(slots) if index not in used]
                assert all(slot.may_be_unnamed(rank, branch.config) for slot in unnamed), (path, operator)
            assert all(role.inputs[index].use is SlotUse.READ for index in branch.const_inputs)


# --- a fork's header ----------------------------------------------------------------------------


def test_a_header_is_read_with_increments_comments_and_references() -> None:
    header = read_header(
        """
        enum Other { TASK_NO = 7 };
        // enum TaskType { TASK_NO = 8 };
        enum TaskType {
          TASK_TERMINATE,
          TASK_BEGIN_TASK_GRAPH = 10, // compute { tasks
          TASK_EMBEDDING = 0x65,
          TASK_NEXT, /* TASK_NO = 9, */
        #ifdef MPK_GLM
          TASK_GLM = TASK_EMBEDDING + 0xC3u,
        #endif
          TASK_ALIAS = TASK_NEXT,
          TASK_LAST
        };
        """
    )
    assert header == {
        0: "TASK_TERMINATE",
        10: "TASK_BEGIN_TASK_GRAPH",
        101: "TASK_EMBEDDING",
        102: "TASK_NEXT",
        296: "TASK_GLM",
        103: "TASK_LAST",
    }


def test_a_scoped_enum_is_read() -> None:
    assert read_header("enum class TaskType : unsigned short { A = 3 }") == {3: "A"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "enum TaskType;",
        "enum TaskType {};",
        "enum TaskTypes { A = 1 };",
        "// enum TaskType { A = 1 };",
        "enum TaskType { A = sizeof(int) };",
        "enum TaskType { A = B };",
        "enum TaskType { A = };",
        "enum TaskType { A B };",
        "enum TaskType { A = 1",
        "enum TaskType { \n" + "x " * 1000 + "};",
    ],
)
def test_a_header_without_a_readable_enum_says_why_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="TaskType") as caught:
        read_header(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 150


@given(st.text())
def test_no_header_raises_anything_else(text: str) -> None:
    for header in (text, f"enum TaskType {{ A = 1, {text} }}"):
        try:
            read_header(header)
        except ValueError as error:
            assert "TaskType" in str(error)  # noqa: PT017
