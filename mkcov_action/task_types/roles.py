"""What each slot of a task is for, by the name of the task's type. Data only."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class SlotUse(StrEnum):
    """What a kernel does with a slot, beyond what inputs and outputs suggest."""

    READ = "read"
    WRITE = "write"
    UPDATE = "update"  # read and written in place
    ACCUMULATE = "accumulate"  # added into: needs an earlier writer
    DUMMY = "dummy"  # only there to draw an edge: no access


class Extent(StrEnum):
    """How the bytes that a full batch accesses relate to the tile that the task graph gives."""

    EXACT = "exact"  # the tile
    SUPERSET = "superset"  # a part of the tile that metadata or data chooses at run time
    SLICE = "slice"  # the tile without its leading (world size) dimension, in another rank's memory


class OptionalUse(StrEnum):
    """Why a body may leave a slot out on purpose; the empty word is false: it may not."""

    NEVER = ""
    IDS = "the ids come from runtime_config"
    RESIDUAL = "only rank 0 adds the residual"


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of a task type.

    `nullable`: may be nullptr, and then `pair` names the step that is skipped: its slots are null
    together or not at all, as the body's flag of that step says. `optional_use`: see there.
    """

    name: str
    use: SlotUse
    nullable: bool = False
    extent: Extent = Extent.EXACT
    optional_use: OptionalUse = OptionalUse.NEVER
    pair: str = ""

    @property
    def exact(self) -> bool:
        """Whether the tile is what is accessed, so that bytes can be compared."""
        return self.extent is Extent.EXACT

    def may_be_unnamed(self, rank: int, config: Collection[str]) -> bool:
        """Whether a body that never names the slot is right, on this rank and with these fields.

        `config` are the runtime_config fields that the body reads.
        """
        if self.optional_use is OptionalUse.IDS:
            return not _TOKEN_FIELDS.isdisjoint(config)
        return self.use is SlotUse.DUMMY or (self.optional_use is OptionalUse.RESIDUAL and rank > 0)


@dataclass(frozen=True, slots=True)
class TaskType:
    """The role of each slot of a task type (mirage src/kernel/graph.cc task_config; kernel headers)."""

    name: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    def fits(self, counts: Collection[tuple[int, int]]) -> bool:
        """Whether some task with these (inputs, outputs) counts is as this type wants it."""
        return (len(self.inputs), len(self.outputs)) in counts


_TOKEN_FIELDS = frozenset({"tokens", "input_tokens"})
_PAIRS = {"q_norm": "qk_norm", "k_norm": "qk_norm", "cos": "rope", "sin": "rope"}

# number name inputs -> outputs, as of Mirage de8745d9 (April 2026): include/mirage/persistent_kernel/
# runtime_header.h for the numbers, src/kernel/graph.cc for the counts, src/kernel/task_register.cc and
# the kernels under include/mirage/persistent_kernel/tasks for the rest. A slot is its name and marks:
#   ~ Extent.SUPERSET   ^ Extent.SLICE   ? nullable
#   :w written and :rw updated in place (inputs), :acc accumulated (outputs), :dummy no access
#   :ids OptionalUse.IDS   :r0 OptionalUse.RESIDUAL
# Types that no generator registers with a kernel (104, 106, 117 and the placeholders) are left out.
_TABLE = """
  0 TERMINATE                             ->
 10 BEGIN_TASK_GRAPH                      ->
101 EMBEDDING                             ids:ids weight~ -> out
102 RMS_NORM_LINEAR                       x w_norm w_linear -> out
103 ATTENTION_1                           qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> out~
105 SILU_MUL_LINEAR_WITH_RESIDUAL         x w residual -> out
107 REDUCE                                local buffer~ -> out
108 LINEAR_WITH_RESIDUAL                  x w residual -> out
109 ARGMAX                                logits -> idx
110 ARGMAX_PARTIAL                        logits -> val idx
111 ARGMAX_REDUCE                         val idx -> token
112 FIND_NGRAM_PARTIAL                    tokens~ -> partial~
113 FIND_NGRAM_GLOBAL                     partial~ tokens~ -> spec_tokens~
114 TARGET_VERIFY_GREEDY                  spec_tokens~ target_tokens~ -> out:dummy
115 SINGLE_BATCH_EXTEND_ATTENTION         qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> out~
116 PAGED_ATTENTION_1                     qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> out~
118 SILU_MUL                              x -> out
119 RMS_NORM                              x w -> out
120 LINEAR                                x w -> out
121 IDENTITY                              x -> out
151 LINEAR_WITH_RESIDUAL_HOPPER           x w residual -> out
152 LINEAR_HOPPER                         x w -> out
153 PAGED_ATTENTION_HOPPER                qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> out~
154 RMS_NORM_HOPPER                       x w -> out
155 LINEAR_SWAPAB_HOPPER                  x w -> out
156 LINEAR_SWAPAB_WITH_RESIDUAL_HOPPER    x w residual:r0 -> out
157 LINEAR_CUTLASS_HOPPER                 x w -> out
158 LINEAR_CUTLASS_WITH_RESIDUAL_HOPPER   x w residual -> out
159 SILU_MUL_HOPPER                       x -> out
160 EMBEDDING_HOPPER                      ids:ids weight~ -> out
161 MOE_W13_LINEAR_SM90                   x~ w~ routing~ mask~ -> out~
162 MOE_W2_LINEAR_SM90                    x~ w~ routing~ mask~ -> out~
163 SPLITK_LINEAR_SWAPAB_HOPPER           x w -> out:acc
164 PAGED_ATTENTION_SPLIT_KV_HOPPER       qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> lse~ o_tmp~
248 MOE_W13_FP8_SM100                     x~ x_scale~ w~ w_scale~ routing~ mask~ -> out~
249 MOE_W2_FP8_SM100                      x~ x_scale~ w~ w_scale~ routing~ mask~ -> out~
251 SPLITK_LINEAR_SM100                   x w -> out:acc
252 LINEAR_WITH_RESIDUAL_SM100            x w residual:r0 -> out
253 LINEAR_SM100                          x w -> out
254 MOE_W13_LINEAR_SM100                  x~ w~ routing~ mask~ -> out~
255 MOE_W2_LINEAR_SM100                   x~ w~ routing~ mask~ -> out~
257 ATTN_SM100                            qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> out~
258 ARGMAX_REDUCE_SM100                   val idx -> token
259 ARGMAX_PARTIAL_SM100                  logits -> val idx
260 MOE_TOPK_SOFTMAX_SM100                logits:rw -> weights routing~ mask~
261 MOE_MUL_SUM_ADD_SM100                 x weights residual -> out
262 TENSOR_INIT                           tensor:w dummy_input:dummy -> dummy_output:dummy
263 PAGED_ATTENTION_SPLIT_KV_SM100        qkv~ k_cache~:rw v_cache~:rw q_norm? k_norm? cos~? sin~? -> lse~ o_tmp~
264 PAGED_ATTENTION_SPLIT_KV_MERGE_SM100  lse~ o_tmp~ -> out~
265 SAMPLING_SM100                        logits -> token
266 MLA_DECODE_SM100                      q~ kv~ -> o_partial~ lse_partial~
267 MLA_REDUCE_SM100                      o_partial~ lse_partial~ -> out~
268 MLA_PREFILL_SM100                     q_nope~ q_pe~ ckv~ kpe~ out~:w ->
269 MLA_MTP_DECODE_SM100                  q~ kv~ -> o_partial~ lse_partial~
270 MLA_MTP_REDUCE_SM100                  o_partial~ lse_partial~ -> out~
271 MTP_VERIFY_STRICT                     draft~ target~ -> accepted~ tokens~
272 MTP_ACCEPT_COMMIT                     accepted~ tokens~ position~ -> new_position~ final_tokens~ num_new~
273 MTP_TOKEN_SCATTER                     token~ -> tokens~
274 MTP_PREPARE_VERIFY                    main_token~ draft~ tokens~:w step~ -> num_new~
275 QUANTIZE_FP8_SM100                    x~ -> x_fp8~ x_scale~
276 LINEAR_FP8_SM100                      x x_scale~ w w_scale~ -> out
277 LINEAR_FP8_WITH_RESIDUAL_SM100        x x_scale~ w w_scale~ residual -> out
278 MLA_KV_GATHER_SM100                   c_latent~ k_pe~ paged_cache~:rw contiguous_kv~:w ->
280 MOE_TOPK_SIGMOID_SM100                logits:rw bias -> weights routing~ mask~
281 ELEMENTWISE_ADD_SM100                 a b -> out
282 SOFTMAX_GATHER_SM100                  logits~ token_ids~ -> probs~
283 MTP_VERIFY_PROBABILISTIC              draft~ target~ p_target~ p_draft~ seed~ -> accepted~ tokens~
284 PROB_SCATTER_SM100                    prob~ step~ -> buffer~
285 MTP_FLOAT_SCATTER                     value~ -> buffer~
286 PROB_EXTRACT_SM100                    buffer~ offset~ -> out~
287 MLA_MTP_DECODE_TP2_SM100              q~ kv~ -> o_partial~ lse_partial~
288 MLA_MTP_DECODE_TP2_REDUCE_SM100       o_partial~ lse_partial~ -> out~
289 MLA_MTP_DECODE_TP4_SM100              q~ kv~ -> o_partial~ lse_partial~
290 MLA_MTP_DECODE_TP4_REDUCE_SM100       o_partial~ lse_partial~ -> out~
291 MLA_MTP_DECODE_TP8_SM100              q~ kv~ -> o_partial~ lse_partial~
292 MLA_MTP_DECODE_TP8_REDUCE_SM100       o_partial~ lse_partial~ -> out~
293 MLA_KV_GATHER_SPLIT_SM100             c_latent~ k_pe~ paged_cache~:rw ckv_sep~:w kpe_sep~:w ->
294 MTP_BUILD_EMBED_INPUT                 main_token~ -> mtp_input_tokens~
295 MLA_PREFILL_TP8_SM100                 q_nope~ q_pe~ k~ v~ -> out~
301 NVSHMEM_ALLGATHER_STRIDED_PUT         local -> buffer^
302 NVSHMEM_TILE_ALLREDUCE                local -> out
"""
_SLOT = re.compile(r"(?P<name>\w+)(?P<extent>[~^]?)(?P<nullable>\??)(?::(?P<mark>\w+))?")
_EXTENTS = {"": Extent.EXACT, "~": Extent.SUPERSET, "^": Extent.SLICE}
_MARKS: Mapping[str, tuple[SlotUse | None, OptionalUse]] = {
    "": (None, OptionalUse.NEVER),
    "w": (SlotUse.WRITE, OptionalUse.NEVER),
    "rw": (SlotUse.UPDATE, OptionalUse.NEVER),
    "acc": (SlotUse.ACCUMULATE, OptionalUse.NEVER),
    "dummy": (SlotUse.DUMMY, OptionalUse.NEVER),
    "ids": (None, OptionalUse.IDS),
    "r0": (None, OptionalUse.RESIDUAL),
}


def _slots(text: str, usual: SlotUse) -> tuple[Slot, ...]:
    slots = []
    for name, extent, nullable, mark in _SLOT.findall(text):
        use, optional = _MARKS[mark]
        pair = _PAIRS.get(name, "") if nullable else ""
        slots.append(Slot(name, use or usual, bool(nullable), _EXTENTS[extent], optional, pair))
    return tuple(slots)


def _rows() -> Iterator[tuple[int, TaskType]]:
    for line in _TABLE.strip().splitlines():
        number, name, slots = line.split(maxsplit=2)
        inputs, _, outputs = slots.partition("->")
        yield (
            int(number),
            TaskType(f"TASK_{name}", _slots(inputs, SlotUse.READ), _slots(outputs, SlotUse.WRITE)),
        )


_BY_NUMBER = dict(_rows())

TASK_TYPES: Mapping[str, TaskType] = {role.name: role for role in _BY_NUMBER.values()}
"""The roles by name. A type without one is unknown: forks and newer generators have more."""

TASK_TYPE_NUMBERS: Mapping[int, str] = {number: role.name for number, role in _BY_NUMBER.items()}
"""The names of April 2026's numbers. Numbers move between versions: an anchor, never a key."""

PUTS = frozenset(
    role.name for role in TASK_TYPES.values() if any(slot.extent is Extent.SLICE for slot in role.outputs)
)
"""The types whose tasks write into another rank's memory and signal an event there."""

ALL_REDUCES = frozenset({"TASK_NVSHMEM_TILE_ALLREDUCE"})
"""The types whose tasks sum a tile over the ranks of a team; all of them read each other's input."""

INITIALISERS = frozenset({"TASK_TENSOR_INIT"})
"""The types that clear a buffer for those that add into it."""

DATA_TYPE_BYTES: Mapping[int, int] = (
    dict.fromkeys((930, 935, 936), 1)  # fp8 e4m3, int8, uint8
    | dict.fromkeys((940, 941, 945, 946), 2)  # fp16, bf16, int16, uint16
    | dict.fromkeys((950, 955, 956), 4)  # fp32, int32, uint32
    | dict.fromkeys((960, 965, 966), 8)  # fp64, int64, uint64
)
"""The bytes of one element by `data_type` (mirage src/base/data_type.cc, get_datatype_size); others have none."""

DATA_TYPE_NAMES: Mapping[int, str] = {
    920: "float4",
    925: "int4",
    926: "uint4",
    930: "float8_e4m3",
    935: "int8",
    936: "uint8",
    940: "float16",
    941: "bfloat16",
    945: "int16",
    946: "uint16",
    950: "float32",
    955: "int32",
    956: "uint32",
    960: "float64",
    965: "int64",
    966: "uint64",
    999: "none",
}
"""The names of `data_type` (mirage include/mirage/type.h, DataType)."""
