"""How the generator of April 2026 lays out each task type: number, division, metadata, body.

Data, kept apart from what mkcov itself knows about task types, so that neither copies the other's
mistakes (mirage include/mirage/persistent_kernel/runtime_header.h for the numbers,
python/mirage/mpk/persistent_kernel.py for the divisions, src/kernel/runtime.cc for the metadata,
src/kernel/task_register.cc for the bodies).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.builder.errors import BuilderError
from tools.builder.tensors import WHOLE, Axes

DEFAULT_METADATA = "request=x"


@dataclass(frozen=True, slots=True)
class Form:
    """The layout of one task type.

    `inputs` and `outputs` say how the grid divides each slot. `arguments` is what the body passes:
    `i2` and `o0` are slots, `i2.tma` a slot's TMA descriptor, `const:i2` one cast to a pointer to
    const, `i2?` one that becomes nullptr where the operator ignores it, `m.` a metadata field, `c.`
    a runtime_config field, `qk_norm` and `rope` the flags of the two optional steps of attention;
    anything else stands for itself.
    """

    number: int
    inputs: tuple[Axes, ...]
    outputs: tuple[Axes, ...]
    metadata: str
    arguments: str


# number name | division of each input (grid x, y, z -> axis) | of each output | metadata | arguments
# An empty metadata column means request=x, which the generator writes for every type.
_TABLE = """
101 EMBEDDING                           | -1- 1--             | 10-     | |
102 RMS_NORM_LINEAR                     | --- --- 0--         | 1--     | |
103 ATTENTION_1                         | 01- 02- 02- {norms} | 01-     | | {step_attention}
105 SILU_MUL_LINEAR_WITH_RESIDUAL       | --- 0-- 1--         | 1--     | | i0 i1 i2 o0 c.my_gpu_id
107 REDUCE                              | 1-- 2--             | 1--     | | i0 i1 o0 c.qo_indptr_buffer
108 LINEAR_WITH_RESIDUAL                | --- 0-- 1--         | 1--     | | i0 i1 i2 o0 c.my_gpu_id
110 ARGMAX_PARTIAL                      | 10-                 | 10- 10- | | i0 o0 o1 c.qo_indptr_buffer
111 ARGMAX_REDUCE                       | 10- 10-             | 01-     | | i0 i1 o0 c.qo_indptr_buffer
112 FIND_NGRAM_PARTIAL                  | ---                 | 1--     | | i0 o0 c.step
113 FIND_NGRAM_GLOBAL                   | --- ---             | ---     | | i0 i1 o0 c.step
114 TARGET_VERIFY_GREEDY                | --- ---             | ---     | | i0 i1 c.tokens c.step
115 SINGLE_BATCH_EXTEND_ATTENTION       | 01- 02- 02- {norms} | 01-     | | {step_attention}
116 PAGED_ATTENTION_1                   | -1- -2- -2- {norms} | -1-     | | {attention}
118 SILU_MUL                            | 1--                 | 1--     | | i0 o0 c.qo_indptr_buffer
119 RMS_NORM                            | 0-- ---             | 0--     | |
120 LINEAR                              | --- 0--             | 1--     | |
121 IDENTITY                            | 1--                 | 1--     | |
151 LINEAR_WITH_RESIDUAL_HOPPER         | --- 0-- 1--         | 1--     | | i1.tma i0.tma i2.tma o0.tma
152 LINEAR_HOPPER                       | --- 0--             | 1--     | | i1.tma i0.tma o0.tma
153 PAGED_ATTENTION_HOPPER              | -1- -2- -2- {norms} | -1-     | | {attention}
154 RMS_NORM_HOPPER                     | 0-- ---             | 0--     | |
155 LINEAR_SWAPAB_HOPPER                | --- 0--             | 1--     | | i1.tma i0.tma o0.tma nullptr
156 LINEAR_SWAPAB_WITH_RESIDUAL_HOPPER  | --- 0-- 1--         | 1--     | | i1.tma i0.tma i2?.tma o0.tma
157 LINEAR_CUTLASS_HOPPER               | --- 0--             | 1--     | | i1.tma i0.tma o0.tma
158 LINEAR_CUTLASS_WITH_RESIDUAL_HOPPER | --- 0-- 1--         | 1--     | | i1.tma i0.tma i2.tma o0.tma
159 SILU_MUL_HOPPER                     | 1--                 | 1--     | |
160 EMBEDDING_HOPPER                    | -1- 1--             | 10-     | |
161 MOE_W13_LINEAR_SM90                 | --- -1- --- ---     | -2-     | expert=x | {experts}
162 MOE_W2_LINEAR_SM90                  | --- -1- --- ---     | -2-     | expert=x | {experts}
163 SPLITK_LINEAR_SWAPAB_HOPPER         | -1- 01-             | 1--     | | i1.tma i0.tma o0.tma
164 PAGED_ATTENTION_SPLIT_KV_HOPPER     | -1- -2- -2- {norms} | -21 -21 | {split} | {split_attention}
248 MOE_W13_FP8_SM100                   | --- --- -1- -1- --- --- | -2- | expert=x | {fp8_experts}
249 MOE_W2_FP8_SM100                    | --- --- -1- -1- --- --- | -2- | expert=x | {fp8_experts}
251 SPLITK_LINEAR_SM100                 | -1- 01-             | 1--     | | i1.tma i0.tma o0.tma nullptr
252 LINEAR_WITH_RESIDUAL_SM100          | --- 0-- 1--         | 1--     | | i1.tma i0.tma o0.tma i2?
253 LINEAR_SM100                        | --- 0--             | 1--     | | i1.tma i0.tma o0.tma nullptr
254 MOE_W13_LINEAR_SM100                | --- -1- --- ---     | -2-     | expert=x | {experts}
255 MOE_W2_LINEAR_SM100                 | --- -1- --- ---     | -2-     | expert=x | {experts}
257 ATTN_SM100                          | -1- -2- -2- {norms} | -1-     | | {attention}
258 ARGMAX_REDUCE_SM100                 | 10- 10-             | 01-     | | i0 i1 o0 c.qo_indptr_buffer
259 ARGMAX_PARTIAL_SM100                | 10-                 | 10- 10- | | i0 o0 o1 c.qo_indptr_buffer
260 MOE_TOPK_SOFTMAX_SM100              | 0--                 | 0-- --- --- | | i0 nullptr o0 o1 o2
261 MOE_MUL_SUM_ADD_SM100               | 02- 0-- 01-         | 01-     | |
262 TENSOR_INIT                         | 0-- 0--             | 0--     | | i0
263 PAGED_ATTENTION_SPLIT_KV_SM100      | -1- -2- -2- {norms} | -21 -21 | {split} | {split_attention}
264 PAGED_ATTENTION_SPLIT_KV_MERGE_SM100 | -2- -2-            | -1-     | {split} | {merge}
265 SAMPLING_SM100                      | 0--                 | 0--     | |
266 MLA_DECODE_SM100 | 0-- 0-- | 0-- 0-- | request=y kv=x merge=z | {mla_decode}
267 MLA_REDUCE_SM100                    | 0-- 0--             | 0--     | request=x merge=z | {mla_reduce}
268 MLA_PREFILL_SM100 | --- --- --- --- --- | | request=z kv=y merge=x | {mla_prefill}
269 MLA_MTP_DECODE_SM100 | --- --- | --- --- | {kxy} | {mla_decode} m.merge_task_offset
270 MLA_MTP_REDUCE_SM100                | --- ---             | ---     | {kxy} | {mla_reduce} m.kv_idx
271 MTP_VERIFY_STRICT                   | --- ---             | --- --- | |
272 MTP_ACCEPT_COMMIT                   | --- --- ---         | --- --- --- | |
273 MTP_TOKEN_SCATTER                   | ---                 | ---     | |
274 MTP_PREPARE_VERIFY                  | --- --- --- ---     | ---     | | m.request_id i0 i1 i2 i3 o0
275 QUANTIZE_FP8_SM100                  | ---                 | --- --- | |
276 LINEAR_FP8_SM100                    | --- --- 0-- 0--     | 1--     | | i0.tma i2.tma i1.tma i3.tma o0.tma
277 LINEAR_FP8_WITH_RESIDUAL_SM100 | --- --- 0-- 0-- 1-- | 1-- | | i0.tma i2.tma i1.tma i3.tma i4.tma o0.tma
278 MLA_KV_GATHER_SM100 | -1- -1- -2- --- | | | m.request_id const:i0 const:i1 i3 i2
280 MOE_TOPK_SIGMOID_SM100              | 0-- ---             | 0-- --- --- | | i0 i1 nullptr o0 o1 o2
281 ELEMENTWISE_ADD_SM100               | 0-- 0--             | 0--     | |
282 SOFTMAX_GATHER_SM100                | --- ---             | ---     | |
283 MTP_VERIFY_PROBABILISTIC            | --- --- --- --- --- | --- --- | |
284 PROB_SCATTER_SM100                  | --- ---             | ---     | |
285 MTP_FLOAT_SCATTER                   | ---                 | ---     | |
286 PROB_EXTRACT_SM100                  | --- ---             | ---     | |
287 MLA_MTP_DECODE_TP2_SM100            | --- ---             | --- --- | {tp} | {mla_decode}
288 MLA_MTP_DECODE_TP2_REDUCE_SM100     | --- ---             | ---     | {kxy} | {mla_reduce} m.kv_idx
289 MLA_MTP_DECODE_TP4_SM100            | --- ---             | --- --- | {tp} | {mla_decode}
290 MLA_MTP_DECODE_TP4_REDUCE_SM100     | --- ---             | ---     | {kxy} | {mla_reduce} m.kv_idx
291 MLA_MTP_DECODE_TP8_SM100            | --- ---             | --- --- | {tp} | {mla_decode}
292 MLA_MTP_DECODE_TP8_REDUCE_SM100     | --- ---             | ---     | {kxy} | {mla_reduce} m.kv_idx
293 MLA_KV_GATHER_SPLIT_SM100 | -1- -1- -2- --- --- | | | m.request_id const:i0 const:i1 i3 i4 i2
294 MTP_BUILD_EMBED_INPUT               | ---                 | ---     | | m.request_id i0 o0 c.tokens c.step
295 MLA_PREFILL_TP8_SM100 | --- --- --- --- | --- | request=x kv=y merge=z | {mla_prefill_tp8}
301 NVSHMEM_ALLGATHER_STRIDED_PUT       | 1--                 | 2--     | | o0 i0 c.all_event_counters
302 NVSHMEM_TILE_ALLREDUCE              | 1--                 | 1--     | offset=linear | {all_reduce}
"""

_PAGES = " ".join(
    f"c.{field}_buffer"
    for field in ("qo_indptr", "paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len")
)
_NORMS_AND_TABLES = "qk_norm rope i3 i4 i5 i6"
_PHRASES = {
    "norms": "--- --- --- ---",
    "split": "request=x kv=z merge=y",
    "kxy": "request=y kv=x merge=z",
    "tp": "request=y kv=x",
    "attention": f"i0 i1 i2 o0 {_PAGES} m.request_id {_NORMS_AND_TABLES}",
    "step_attention": f"i0 i1 i2 o0 c.step {_NORMS_AND_TABLES}",
    "split_attention": f"i0 i1 i2 o0 o1 {_PAGES} m.request_id {_NORMS_AND_TABLES} m.kv_idx",
    "merge": "i0 i1 o0 m.request_id m.merge_task_offset",
    "experts": "i1.tma nullptr i2 i3 o0 i0 m.expert_offset",
    "fp8_experts": "i2.tma i0 i1 i3 i4 i5 o0 m.expert_offset",
    "mla_decode": "const:i0.tma const:i1.tma o0 o1 m.request_id m.kv_idx",
    "mla_reduce": "const:i0 const:i1 o0 m.request_id m.merge_task_offset",
    "mla_prefill": "const:i0 const:i1 const:i2 const:i3 i4 m.request_id m.kv_idx m.merge_task_offset",
    "mla_prefill_tp8": "const:i0 const:i1 const:i2 const:i3 o0 m.request_id m.kv_idx m.merge_task_offset",
    "all_reduce": "i0 o0 c.nvshmem_teams m.task_offset c.qo_indptr_buffer",
}

PUT = "TASK_NVSHMEM_ALLGATHER_STRIDED_PUT"
"""The one type with a task for each other rank, which triggers an event over there."""


def read_axes(text: str) -> Axes:
    """`-1-`: grid dimension y divides axis 1."""
    x, y, z = (None if mark == "-" else int(mark) for mark in text)
    return (x, y, z)


def form_of(type_name: str, number: int | None, slots: tuple[int, int]) -> Form:
    """The form of a known type, or one that divides nothing and passes every slot of a fork's type.

    Slots beyond those of a known type are a fork's: undivided, and read only.
    """
    known = FORMS.get(type_name)
    if known is None:
        if number is None:
            raise BuilderError(f"{type_name} is no task type of Mirage's: give its number")
        return Form(number, (WHOLE,) * slots[0], (WHOLE,) * slots[1], DEFAULT_METADATA, _all_slots(*slots))
    more = range(len(known.inputs), slots[0])
    return Form(
        known.number if number is None else number,
        known.inputs + (WHOLE,) * len(more),
        known.outputs + (WHOLE,) * (slots[1] - len(known.outputs)),
        known.metadata,
        " ".join([known.arguments, *(f"const:i{slot}" for slot in more)]),
    )


def _all_slots(inputs: int, outputs: int) -> str:
    return " ".join([*(f"i{slot}" for slot in range(inputs)), *(f"o{slot}" for slot in range(outputs))])


def _read_table() -> Iterator[tuple[str, Form]]:
    for line in _TABLE.format_map(_PHRASES).strip().splitlines():
        head, *columns = (part.strip() for part in line.split("|"))
        number, name = head.split()
        inputs, outputs = (tuple(map(read_axes, columns[slot].split())) for slot in (0, 1))
        arguments = columns[3] or _all_slots(len(inputs), len(outputs))
        yield f"TASK_{name}", Form(int(number), inputs, outputs, columns[2] or DEFAULT_METADATA, arguments)


FORMS: Mapping[str, Form] = dict(_read_table())
