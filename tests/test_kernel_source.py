from __future__ import annotations

import json
import lzma
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mkcov_action.finding import Artifact, Operator, ProblemKind
from mkcov_action.kernel_source import Branch, Copy, Declaration, Dispatcher, KernelSource, Origin
from mkcov_action.kernel_source import read_kernel_source as read

ATTACHED = 'char *{0} = static_cast<char*>(model_tensors.at("{0}"));\nall_tensors["{0}"] = {0};\n'
COPY_INTO = (
    "cudaMemcpy2DAsync(reinterpret_cast<void *>({0} + 0), 8, "
    'model_tensors.at("q"), 8, 8, 1, cudaMemcpyDeviceToDevice);'
)
SCRATCH = 'void *{0};\nCUDA_CHECK(cudaMalloc(&{0}, 4096));\nall_tensors["{0}"] = {0};\n'


def kernel(text: str) -> KernelSource:
    source, problems = read(text.encode())
    assert source is not None, problems
    assert problems == ()
    return source


def declared(text: str) -> Declaration:
    declarations = kernel(text).declarations
    assert len(declarations) == 1, declarations
    (name, declaration) = next(iter(declarations.items()))
    assert declaration.name == name
    return declaration


def dispatcher(chain: str) -> Dispatcher:
    found = kernel(ATTACHED.format("x") + chain).dispatcher
    assert found is not None
    return found


def branch(body: str) -> Branch:
    found = dispatcher(condition("TASK_X") + body + "}")
    (only,) = found.branches.values()
    return only


def used(found: Branch) -> tuple[set[int] | None, set[int] | None]:
    inputs, outputs = found.inputs, found.outputs
    return None if inputs is None else set(inputs), None if outputs is None else set(outputs)


def condition(task_type: str, variant: int = 0, access: str = "->") -> str:
    return f"if (task_desc{access}task_type == {task_type} && task_desc{access}variant_id == {variant}) {{\n"


# --- declarations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statements", "origin", "size"),
    [
        ('char *x = static_cast<char*>(model_tensors.at("x"));', Origin.MODEL, None),
        ("char *x = (char*)(0x7f12a4000000);", Origin.MODEL, None),
        ("void *x; CUDA_CHECK(cudaMalloc(&x, 4096));", Origin.SCRATCH, 4096),
        ("void *x; cudaMalloc(&x, 4096);", Origin.SCRATCH, 4096),
        ("void*x;cudaMalloc( & x , 4096ULL );", Origin.SCRATCH, 4096),
        ("void *x; cudaMalloc((void**)&x, 0x1000);", Origin.SCRATCH, 4096),
        ("void *x; cudaMalloc(&x, 4 * sizeof(float));", Origin.SCRATCH, None),
        ("void *x; cudaMalloc(&x, 4.5);", Origin.SCRATCH, None),
        ("void *x; cudaMalloc(&x, " + "9" * 5000 + ");", Origin.SCRATCH, None),
        ("void *x = nvshmem_malloc(4096); assert(x != nullptr);", Origin.SYMMETRIC, 4096),
        ("void *x = nvshmem_malloc(4096UL);", Origin.SYMMETRIC, 4096),
        ("char *x; CUDA_CHECK(cudaMalloc(&x, 4096));", Origin.SHUFFLED, 4096),
        ("void *x = pool.allocate(4096);", Origin.UNKNOWN, None),
        ("char *x;", Origin.UNKNOWN, None),
        ("cudaMalloc(&x, 4096);", Origin.UNKNOWN, 4096),
        ("", Origin.UNKNOWN, None),
    ],
)
def test_every_form_of_declaration_tells_where_the_memory_comes_from(
    statements: str, origin: Origin, size: int | None
) -> None:
    declaration = declared(statements + '\nall_tensors["x"] = x;')
    assert (declaration.name, declaration.origin, declaration.bytes) == ("x", origin, size)
    assert declaration.copies == ()
    assert declaration.copies_known


def test_a_shuffled_tensor_lists_its_copies() -> None:
    declaration = declared(
        "\n"
        "char *qkv;\n"
        "CUDA_CHECK(cudaMalloc(&qkv, 96));\n"
        "CUDA_CHECK(cudaMemcpy2DAsync(reinterpret_cast<void *>(qkv + 0), 24, "
        'model_tensors.at("q"), 16, 16, 4, cudaMemcpyDeviceToDevice));\n'
        "CUDA_CHECK(cudaMemcpy2DAsync(reinterpret_cast<void *>(qkv + 16), 24, "
        'model_tensors.at("k.w\\""), 8, 8, 4, cudaMemcpyDeviceToDevice));\n'
        'all_tensors["qkv"] = qkv;\n'
    )
    copies = (Copy("q", 0, 24, 16, 16, 4, line=4), Copy('k.w"', 16, 24, 8, 8, 4, line=5))
    assert declaration == Declaration("qkv", Origin.SHUFFLED, 2, 96, copies)


def test_an_older_generators_copies_have_no_source() -> None:
    declaration = declared(
        "char *w;\ncudaMalloc(&w, 8);\n"
        "cudaMemcpy2DAsync(reinterpret_cast<void *>(w + 0), 8, reinterpret_cast<const void *>(0x7f00), "
        "8, 8, 1, cudaMemcpyDeviceToDevice);\n"
        'all_tensors["w"] = w;'
    )
    assert declaration.copies == (Copy(None, 0, 8, 8, 8, 1, line=3),)


@pytest.mark.parametrize(
    "filling",
    [
        'fill(x, model_tensors.at("q"));',
        "cudaMemcpyAsync(x + 8, y, 8, kind);",
        "cudaMemcpy2DAsync(reinterpret_cast<void *>(x + n), 8, reinterpret_cast<const void *>(0x7f), 8, 8, 1, k);",
        "init<<<1, 2>>>(x);",
    ],
)
@pytest.mark.parametrize("pointee", ["char", "void"])
def test_memory_that_an_unknown_statement_fills_is_said_to_be_unknown(pointee: str, filling: str) -> None:
    statements = f'{pointee} *x; cudaMalloc(&x, 64); {filling} all_tensors["x"] = x;'
    assert not declared(statements).copies_known


def test_statements_about_other_variables_or_elsewhere_fill_nothing() -> None:
    declaration = declared(
        'f(x); char *x; cudaMalloc(&x, 64); fill(xy, "x", x_); /* x */ all_tensors["x"] = x; f(x);'
    )
    assert declaration.copies_known


def test_what_filled_an_earlier_allocation_says_nothing_about_the_next() -> None:
    first = "char *x; cudaMalloc(&x, 8); fill(x); " + COPY_INTO.replace("{0}", "x")
    declaration = declared(first + 'cudaMalloc(&x, 16); all_tensors["x"] = x;')
    assert declaration == Declaration("x", Origin.SHUFFLED, 1, 16)


def test_the_line_is_that_of_the_variables_declaration() -> None:
    text = '\n\nvoid *a;\nchar *b =\n static_cast<char*>(\n  model_tensors.at("b"));\ncudaMalloc(&a, 1);\n'
    declarations = kernel(
        text + 'all_tensors["b"] = b;\nall_tensors["a"] = a;\nall_tensors["c"] = c;'
    ).declarations
    assert {name: declaration.line for name, declaration in declarations.items()} == {"a": 3, "b": 4, "c": 10}


def test_the_last_assignment_before_the_table_line_wins() -> None:
    declarations = kernel(
        "void *x; cudaMalloc(&x, 1); void *x = nvshmem_malloc(2);\n"
        'all_tensors["first"] = x;\n'
        'x = static_cast<char*>(model_tensors.at("x"));\n'
        'all_tensors["second"] = x;\n'
        "void *x; cudaMalloc(&x, 3);"
    ).declarations
    assert declarations["first"] == Declaration("first", Origin.SYMMETRIC, 1, 2)
    assert declarations["second"].origin is Origin.MODEL


def test_declarations_may_stand_apart_from_the_table() -> None:
    declarations = kernel(
        'void *a; void *b; cudaMalloc(&b, 2); cudaMalloc(&a, 1); all_tensors["A"] = a; all_tensors["B"] = b;'
    ).declarations
    assert [(d.name, d.bytes) for d in declarations.values()] == [("A", 1), ("B", 2)]


def test_nullptr_is_no_tensor() -> None:
    source = kernel(ATTACHED.format("x") + 'all_tensors["nullptr"] = nullptr;')
    assert list(source.declarations) == ["x"]


def test_the_world_size_is_the_literal_that_the_generator_assigns() -> None:
    assert kernel(ATTACHED.format("x")).world_size is None
    assert kernel("assert(num_gpus = 8);" + ATTACHED.format("x")).world_size == 8
    assert kernel("assert( num_gpus == 16 );" + ATTACHED.format("x")).world_size == 16


@pytest.mark.parametrize("text", ["", "int main() {}", 'all_tensors["nullptr"] = nullptr;', "{", '"', "\0"])
def test_a_kernel_without_declarations_is_one_problem(text: str) -> None:
    source, (problem,) = read(text.encode())
    assert source is None
    assert (problem.kind, problem.artifact) == (ProblemKind.UNRECOGNISED, Artifact.KERNEL)


# --- names --------------------------------------------------------------------------------------

NAMES = [
    "model.layers.0.self_attn.q_proj.weight",
    "layer-0/q proj",
    "a//b",
    "a/*b",
    'say "hi"',
    'one"quote',
    "it's",
    "line\nbreak",
    "tab\tand\x07bell",
    "::error::title=x",
    "<img src=x onerror=alert(1)>",
    "a;b",
    "a, b",
    "f(x) = {y}",
    "&x",
    "naïve ✓",
    " ",
    "x" * 10_000,
    "[]] =",
    "\x1b[31m",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("form", "origin"),
    [
        ('char *{0} = static_cast<char*>(model_tensors.at("{0}"));', Origin.MODEL),
        ("char *{0} = (char*)(0x7f12a4000000);", Origin.MODEL),
        ("void *{0};\nCUDA_CHECK(cudaMalloc(&{0}, 4096));", Origin.SCRATCH),
        ("void *{0} = nvshmem_malloc(4096);\nassert({0} != nullptr);", Origin.SYMMETRIC),
        ("char *{0};\ncudaMalloc(&{0}, 8);\n" + COPY_INTO, Origin.SHUFFLED),
    ],
)
def test_a_name_that_the_generator_prints_as_it_is_is_read(name: str, form: str, origin: Origin) -> None:
    text = ATTACHED.format("before") + form + '\nall_tensors["{0}"] = {0};\n'
    declarations = kernel(text.replace("{0}", name) + SCRATCH.format("after")).declarations
    assert list(declarations) == ["before", name, "after"]
    assert declarations[name].origin is origin
    assert declarations[name].line == 3
    assert declarations[name].copies_known
    assert len(declarations[name].copies) == (origin is Origin.SHUFFLED)
    assert declarations["after"].line == text.replace("{0}", name).count("\n") + 1


@pytest.mark.parametrize(
    ("literal", "name"),
    [
        (r"a\"b", 'a"b'),
        (r"a\\b", r"a\b"),
        (r"a\nb\tc", "a\nb\tc"),
        (r"\x41\102\\x43", r"AB\x43"),
        (r"\xc3\xa9", "é"),
        (r"\xff!", r"\xff!"),
        (r"\q", r"\q"),
        (r"\"] = x; \\", '"] = x; \\'),
        ("two\nlines", "two\nlines"),
        ("//", "//"),
        ("", ""),
    ],
)
def test_escapes_in_a_name_are_undone(literal: str, name: str) -> None:
    text = f'char *v = static_cast<char*>(model_tensors.at("w"));\nall_tensors["{literal}"] = v; // ok\n'
    declarations = kernel(text + SCRATCH.format("after")).declarations
    assert {n: d.origin for n, d in declarations.items()} == {name: Origin.MODEL, "after": Origin.SCRATCH}


def test_text_that_is_not_utf8_is_read_all_the_same() -> None:
    source, _ = read(b"// gr\xf6\xdfer\n" + ATTACHED.format("x").encode() + b'all_tensors["\xff"] = x;')
    assert source is not None
    assert list(source.declarations) == ["x", r"\xff"]


def test_an_entry_without_its_end_costs_no_other() -> None:
    text = 'all_tensors["broken\n' + ATTACHED.format("x") + 'all_tensors["also broken'
    assert list(kernel(text).declarations) == ["x"]


def test_a_comment_about_the_table_costs_no_declaration() -> None:
    text = '// as in all_tensors["\n' + ATTACHED.format("x").partition("all_tensors")[0]
    assert declared(text + 'json["y"] = 3;\nall_tensors["x"] = x;').origin is Origin.MODEL


# --- comments and literals ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "// {}",
        "/* {} */",
        "/*\n\n{}\n*/",
        "// \\\n{}",
        "/* {}",
        '"" /* " */ // {}',
        "'\"' // {}",
        "int x = 1'000; // {}",
        "/* // */ /* {} */",
    ],
)
@pytest.mark.parametrize("hidden", [ATTACHED.format("x").replace("\n", " "), 'all_tensors["x"] = y;'])
def test_comments_never_declare(text: str, hidden: str) -> None:
    assert read(text.replace("{}", hidden).encode())[0] is None


@pytest.mark.parametrize(
    "literal", ['"/*"', '"//"', '"\\"/*"', "'\"'", "'\\''", '"{"', 'R"(" /* )"', "1'000"]
)
def test_literals_hide_nothing_that_follows(literal: str) -> None:
    text = f"f({literal});" + ATTACHED.format("x") + condition("TASK_A") + f"f({literal}); }}"
    found = kernel(text)
    assert found.dispatcher is not None
    assert found.dispatcher.complete


def test_strings_never_declare() -> None:
    hidden = json.dumps(ATTACHED.format("x"))
    assert read(f"puts({hidden});".encode())[0] is None
    assert read(('puts(R"--(' + ATTACHED.format("x") + ')--");').encode())[0] is None


# --- dispatcher ---------------------------------------------------------------------------------


def test_branches_are_found_by_type_and_variant_in_the_order_of_the_text() -> None:
    found = dispatcher(
        "\n__device__ __forceinline__\nvoid _execute_task(TaskDesc const* task_desc,\n"
        "                   RuntimeConfig const &runtime_config) {\n"
        + condition("TASK_B", 0)
        + "}\nelse "
        + condition("TASK_B", 1)
        + "}\nelse "
        + condition("TASK_A", 0)
        + "}\n}\n"
    )
    assert found.line == 5
    assert {(o.type_name, o.variant): b.line for o, b in found.branches.items()} == {
        ("TASK_B", 0): 7,
        ("TASK_B", 1): 9,
        ("TASK_A", 0): 11,
    }
    assert found.type_names == ("TASK_B", "TASK_A")
    assert found.complete


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("if (task_desc->task_type == TASK_A && task_desc->variant_id == 1) {}", "TASK_A"),
        ("if (task_desc.task_type == TASK_A && task_desc.variant_id == 1) {}", "TASK_A"),
        ("if(task_desc->task_type==TASK_A&&task_desc->variant_id==1u){}", "TASK_A"),
        ("if\n( task_desc -> task_type\n== TASK_A\n&& task_desc -> variant_id\n== 1 )\n{ }", "TASK_A"),
        ("if ((task_desc->task_type == TASK_A) && (task_desc->variant_id == 1)) {}", "TASK_A"),
        ("if (task_desc->task_type == mirage::runtime::TASK_A && task_desc->variant_id == 1) {}", "TASK_A"),
        ("if (task_desc->task_type == 296 && task_desc->variant_id == 1) {}", "TYPE_296"),
        (
            "if (task_desc->task_type == static_cast<TaskType>(296) && task_desc->variant_id == 1) {}",
            "TYPE_296",
        ),
        ("if (task_desc->task_type == (TaskType)296 && task_desc->variant_id == 1) {}", "TYPE_296"),
        ("if (task_desc->task_type == TaskType(0x128) && task_desc->variant_id == 1) {}", "TYPE_296"),
    ],
)
def test_every_spelling_of_a_condition_is_read(text: str, name: str) -> None:
    found = dispatcher(text)
    assert list(found.branches) == [Operator(name, 1)]
    assert found.complete


def test_the_first_of_two_branches_wins() -> None:
    chain = condition("TASK_A") + "f(task_desc->input_ptrs[0]);}" + condition("TASK_A") + "}"
    assert used(dispatcher(chain).branches[Operator("TASK_A", 0)]) == ({0}, set())


def test_a_branch_ends_at_its_brace_and_not_at_the_next_else() -> None:
    found = dispatcher(
        condition("TASK_A")
        + "auto l = make_layout(cute::Int<1>{}); if (n > 8) { n = 8; } else if (n == 2) { n = 1; } else { }\n"
        + "if (n > 1'0) { n = 2'0; } printf(\"}}}{\"); c = '}'; /* } */ f(task_desc->input_ptrs[1]); }\n else "
        + condition("TASK_B")
        + "f(task_desc->output_ptrs[2]); } f(task_desc->input_ptrs[9]);"
    )
    assert [used(b) for b in found.branches.values()] == [({1}, set()), (set(), {2})]
    assert found.complete


@pytest.mark.parametrize(
    ("body", "inputs", "outputs"),
    [
        ("", set(), set()),
        ("f(task_desc->input_ptrs[0], task_desc->input_ptrs[6]);", {0, 6}, set()),
        ("f(task_desc->input_tma_desc_ptrs[2][0], task_desc->output_tma_desc_ptrs[1][2]);", {2}, {1}),
        ("f(task_desc.input_ptrs[0x1], task_desc . output_ptrs [ 0u ]);", {1}, {0}),
        ("f(task_desc.inputs[3].base_ptr, task_desc.outputs[1].tma_desc_ptrs[0]);", {3}, {1}),
        ("f(task_desc->input_ptrs[i], task_desc->output_ptrs[0]);", None, {0}),
        ("f(task_desc->input_ptrs[0 + 1]);", None, set()),
        ("void *const *in = task_desc->input_ptrs;", None, set()),
        ("f(task_desc->input_ptrs[0], task_desc->output_tma_desc_ptrs[k][0]);", {0}, None),
        ("f(task_desc);", None, None),
        ("auto &t = *task_desc; t.input_ptrs[0];", None, None),
        ("f(task_desc->operand_ptrs[0]);", None, None),
        ("int e = task_desc->trigger_event; f(runtime_config);", set(), set()),
        ('// f(task_desc);\nputs("task_desc");', set(), set()),
    ],
)
def test_used_slots_are_those_that_the_body_names(
    body: str, inputs: set[int] | None, outputs: set[int] | None
) -> None:
    assert used(branch(body)) == (inputs, outputs)


@pytest.mark.parametrize(
    ("expression", "const"),
    [
        ("static_cast<const nv_bfloat16*>({})", True),
        ("static_cast<nv_bfloat16 const *>({}) + qo_fp_ * 128", True),
        ("reinterpret_cast<const cutlass::Array<T, 8> * __restrict__>(\n {} + 4)", True),
        ("(const float*){}", True),
        ("*(float const *const)({})", True),
        ("static_cast<nv_bfloat16*>({})", False),
        ("static_cast<T *const>({})", False),
        ("static_cast<const T**>({})", False),
        ("static_cast<std::vector<const T>*>({})", False),
        ("(float*)(const float*){}", False),
        ("(float*)static_cast<const float*>({})", False),
        ("const_cast<T*>(static_cast<const T*>({}))", False),
        ("f(static_cast<const T*>({}), {})", False),
        ("static_cast<const T*>(g({}))", False),
        ("{}", False),
    ],
)
def test_only_casts_to_const_prove_a_slot_unwritten(expression: str, const: bool) -> None:
    slot = "task_desc->input_ptrs[2]"
    found = branch(f"f({expression.replace('{}', slot)}, task_desc->input_ptrs[0]);")
    assert used(found) == ({0, 2}, set())
    assert found.const_inputs == ({2} if const else set())


def test_a_const_descriptor_proves_nothing() -> None:
    found = branch("f(static_cast<const CUtensorMap*>(task_desc->input_tma_desc_ptrs[1][0]));")
    assert found.const_inputs == set()


def test_nothing_is_proven_where_an_index_is_computed() -> None:
    found = branch("f(static_cast<const T*>(task_desc->input_ptrs[1]), task_desc->input_ptrs[i]);")
    assert found.inputs is None
    assert found.const_inputs == set()


def test_fields_and_literals_are_read_in_order() -> None:
    found = branch(
        "kernel::f<bfloat16, true, 8>(task_desc->input_ptrs[0], runtime_config.qo_indptr_buffer,\n"
        "  task_desc->task_metadata.request_id, true, false, task_desc->output_ptrs[0], nullptr,\n"
        "  is_true, runtime_config.step[0] + 1);"
    )
    assert found.metadata == {"request_id"}
    assert found.config == {"qo_indptr_buffer", "step"}
    assert found.tokens == (
        "true",
        "input:0",
        "config:qo_indptr_buffer",
        "metadata:request_id",
        "true",
        "false",
        "output:0",
        "nullptr",
        "config:step",
    )


@pytest.mark.parametrize(
    "whole", ["f(task_desc->task_metadata);", "f(task_desc->task_metadata.raw_payload);", "f(task_desc);"]
)
def test_metadata_that_is_passed_on_counts_as_read_in_full(whole: str) -> None:
    fields = {"request_id", "kv_idx", "expert_offset", "task_offset", "merge_task_offset"}
    assert branch(whole).metadata == fields


def test_metadata_of_older_generators_is_a_member_of_the_descriptor() -> None:
    assert branch("f(task_desc.request_id, task_desc->expert_offset);").metadata == {
        "request_id",
        "expert_offset",
    }


SWITCH = "void _execute_gemm_task_v2(TaskDesc const *t) { switch (t->task_type) { case TASK_A: break; } }"


@pytest.mark.parametrize(
    "text",
    [
        "",
        SWITCH,
        "void _execute_task(TaskDesc const* task_desc) { table[task_desc->task_type](task_desc); }",
        "if (task_desc->task_type == TASK_A) { f(); }",
        "if (task_desc->task_type == TASK_A || task_desc->task_type == TASK_B && task_desc->variant_id == 0) { }",
        "// " + condition("TASK_A").strip() + "}",
    ],
)
def test_a_dispatcher_of_another_form_is_unknown(text: str) -> None:
    assert kernel(ATTACHED.format("x") + text).dispatcher is None


KNOWN = "void _execute_task(TaskDesc const *task_desc) {\n" + condition("TASK_A") + "}\n"


@pytest.mark.parametrize(
    "text",
    [
        SWITCH + KNOWN + "}",
        KNOWN + "}" + SWITCH,
        KNOWN + "}\nvoid _execute_more(TaskDesc const *t) { table[t->kind](t); }",
        KNOWN + "else { _execute_rest(task_desc); } }",
        KNOWN + "else if (task_desc->task_type == TASK_B) { } }",
        KNOWN + "if (task_desc->task_type == TASK_B) { } }",
        KNOWN + "switch (static_cast<int>(task_type)) {} }",
        KNOWN.replace("}\n", "f({);\n") + "else " + condition("TASK_B") + "} } // }}}",
    ],
)
def test_a_second_dispatcher_makes_the_known_one_incomplete(text: str) -> None:
    found = dispatcher(text)
    assert not found.complete
    assert Operator("TASK_A", 0) in found.branches


def test_a_missing_brace_costs_one_branch_its_precision() -> None:
    opened = condition("TASK_A") + "f({ task_desc->input_ptrs[0]);\n"
    found = dispatcher(opened + "else " + condition("TASK_B") + "f(task_desc->input_ptrs[1]); } // }}}")
    broken, sound = found.branches.values()
    assert used(broken) == (None, None)
    assert used(sound) == ({1}, set())


# --- real kernels -------------------------------------------------------------------------------


def kernels_of(corpus: Path) -> list[tuple[Path, str, KernelSource]]:
    texts = [
        (path, lzma.decompress(path.read_bytes()).decode())
        for path in sorted(corpus.glob("*/kernel_*.cu.xz"))
    ]
    assert texts
    return [(path, text, kernel(text)) for path, text in texts]


def test_real_kernels_declare_what_the_seed_counted(corpus: Path) -> None:
    words = {Origin.SCRATCH: "cuda_malloc", Origin.MODEL: "model_tensor", Origin.SYMMETRIC: "nvshmem_malloc"}
    for path, text, source in kernels_of(corpus):
        rank = path.name.removeprefix("kernel_").split(".")[0]
        expected = json.loads((path.parent / "coverage.json").read_text())[rank]
        counted = Counter(words.get(d.origin, d.origin) for d in source.declarations.values())
        assert counted == Counter(expected["origins"])
        assert len(source.declarations) == expected["n_declared"] - 1  # the seed counts nullptr
        assert all(d.copies_known for d in source.declarations.values())
        lines = text.splitlines()
        assert all(f" *{d.name}" in lines[d.line - 1] for d in source.declarations.values())


def test_copies_of_real_shuffled_tensors_add_up(corpus: Path) -> None:
    shuffled = [
        declaration
        for _, _, source in kernels_of(corpus)
        for declaration in source.declarations.values()
        if declaration.origin is Origin.SHUFFLED
    ]
    assert shuffled
    for declaration in shuffled:
        assert sum(copy.width * copy.height for copy in declaration.copies) == declaration.bytes
        assert all(copy.source for copy in declaration.copies)


def test_real_dispatchers_are_read_in_full(corpus: Path) -> None:
    for path, text, source in kernels_of(corpus):
        found = source.dispatcher
        assert found is not None
        assert found.complete, path
        assert len(found.branches) == text.count("task_desc->task_type ==")
        assert all(b.inputs is not None and b.outputs is not None for b in found.branches.values())
        lines = text.splitlines()
        assert "_execute_task(" in lines[found.line - 1]
        assert all(f"{o.type_name} " in lines[b.line - 1] for o, b in found.branches.items())
        assert source.world_size == int(text.partition("num_gpus = ")[2].partition(")")[0])


# --- hostile text -------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *"{}()[];,=&*<>+\"'\\/\n -",
        "//",
        "/*",
        "*/",
        "x",
        "layer.0",
        "char *",
        "void *",
        "static_cast<char*>(",
        "static_cast<const T*>(",
        'model_tensors.at("',
        "cudaMalloc(&",
        "nvshmem_malloc(",
        "cudaMemcpy2DAsync(reinterpret_cast<void *>(",
        'all_tensors["',
        '"] = ',
        "nullptr",
        "4096",
        "task_desc->",
        "task_type == ",
        "variant_id == ",
        condition("TASK_A"),
        "input_ptrs[",
        "runtime_config.",
        "_execute_task(",
        "else ",
        'R"(',
        "\0",
        "\ue000",
        "é",
    ]
)


@given(st.one_of(st.binary(), st.text().map(str.encode), st.lists(WORDS).map("".join).map(str.encode)))
def test_no_text_makes_the_reader_raise(data: bytes) -> None:
    source, problems = read(data)
    assert (source is None) == (len(problems) == 1)
    for declaration in source.declarations.values() if source else ():
        assert 1 <= declaration.line <= data.count(b"\n") + 1
        declaration.name.encode()


@given(st.lists(WORDS).map("".join))
def test_a_line_comment_in_front_of_a_kernel_changes_nothing(text: str) -> None:
    comment = "// " + text.replace("\n", " ").replace("\\", " ") + "\n"
    bare, commented = (
        kernel("\n" + ATTACHED.format("x") + KNOWN + "}"),
        kernel(comment + ATTACHED.format("x") + KNOWN + "}"),
    )
    assert bare == commented


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters='"\\\r'), min_size=1))
def test_any_name_without_quotes_is_read_as_it_stands(name: str) -> None:
    assume(re.search(r"[;{}]\s*\n", name) is None)  # what spans statements is taken for a missing quote
    declarations = kernel(f'all_tensors["{name}"] = v;' + ATTACHED.format("x")).declarations
    assert list(declarations) == ([name, "x"] if name not in {"x", "nullptr"} else ["x"])


@pytest.mark.parametrize(
    "unit",
    [
        "/*",
        'all_tensors["',
        'all_tensors["a"] = ',
        'all_tensors["a b"] = a b;',
        "{",
        '"',
        '\\"',
        "'",
        'R"(',
        "char *",
        "x = static_cast<",
        "void *x;cudaMalloc(&x, 1);",
        "cudaMemcpy2DAsync(reinterpret_cast<void *>(a + 0), 1, reinterpret_cast<",
        condition("TASK_A") + "{",
        condition("TASK_A") + "static_cast<const T*>(task_desc->input_ptrs[0])",
        "_execute_a(switch (",
        "static_cast<",
        "a b ",
        " ",
    ],
)
@pytest.mark.parametrize("start", [SCRATCH.format("x"), SCRATCH.format("x") + condition("TASK_B")])
def test_hostile_text_takes_linear_time(unit: str, start: str) -> None:
    def seconds(length: int) -> float:
        data = (start + unit * (length // len(unit))).encode()
        begun = time.process_time()
        read(data)
        return time.process_time() - begun

    small, large = seconds(125_000), seconds(1_000_000)
    assert large < 30 * max(small, 0.02)  # eight times the text; a quadratic reader needs 64 times as long
