"""A neighbourhood as a drawing for Graphviz (`dot -Tsvg`).

Labels are quoted strings and nothing else: Graphviz reads HTML only between angle brackets, but
backslashes and character entities in strings, too, so that those are escaped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mkcov_action.finding import ranges
from mkcov_action.neighbourhood.drawing import CallNode, Drawing, Edge, EdgeKind, EventNode
from mkcov_action.neighbourhood.model import (
    EventView,
    LayerView,
    OperatorView,
    Shown,
    TaskView,
    TensorView,
    View,
)
from mkcov_action.reporters.clean import name
from mkcov_action.reporters.show_words import operator_of, tasks_of
from mkcov_action.reporters.wording import count, some

_NAME_LIMIT = 60
_TENSORS = 4
_TITLES = 4
_HEAD = """\
digraph mkcov {
  graph [rankdir=TB, nodesep=0.35, ranksep=0.4, fontname="Helvetica", fontsize=11, labelloc=b, labeljust=l];
  node [fontname="Helvetica", fontsize=11, color="#57606a", fontcolor="#1f2328"];
  edge [fontname="Helvetica", fontsize=9, color="#57606a", fontcolor="#0550ae", arrowsize=0.7];
"""
_ARRAY = 'pack=24; packmode="array_ut3";'
"""Pieces in rows of three, in the order of tasks: side by side they would be a ribbon."""

_LEGEND = (
    "boxes: operator calls; ovals: events, with the tasks that trigger them of the triggers that they wait for; red: never runs, never fires",
    "blue on an edge: what the reader gets from the writers before it; dashed: no event lies between just these two",
)


def render(shown: Shown, drawing: Drawing) -> str:
    """The drawing of what is shown in the DOT language, each line ended by a newline."""
    return _HEAD + "".join(f"  {line}\n" for line in _lines(shown, drawing)) + "}\n"


def _lines(shown: Shown, drawing: Drawing) -> Iterator[str]:
    notes = [
        f"{_name(shown.graph)} rank {shown.rank}: {some(list(map(_title, shown.shown)), _TITLES)}",
        *_LEGEND,
    ]
    if drawing.left_out:
        notes.append(
            f"left out: {count(drawing.left_out, 'call')}, of layers like those shown or beyond what fits"
        )
    yield f"label={_label(notes, justify='l')};"
    pieces = not _is_connected(drawing)
    if pieces:
        yield _ARRAY
    yield from map(_call, drawing.calls)
    yield from map(_event, drawing.events)
    yield from (_edge(edge, minlen=2 if pieces else 1) for edge in drawing.edges)


def _is_connected(drawing: Drawing) -> bool:
    """Whether the drawing is in one piece."""
    beside: dict[str, set[str]] = {f"c{node.call.call}": set() for node in drawing.calls}
    beside |= {f"e{node.number}": set() for node in drawing.events}
    for source, target in map(_ends, drawing.edges):
        beside[source].add(target)
        beside[target].add(source)
    reached = list(beside)[:1]
    for node in reached:  # grows as it is walked
        reached += [other for other in beside.pop(node) if other in beside and other not in reached]
    return not beside


def _title(view: View) -> str:
    match view:
        case TensorView():
            return f"tensor {_name(view.name)}"
        case OperatorView():
            return f"operator {operator_of(view)}"
        case LayerView():
            return f"layer {view.layer}"
        case TaskView():
            return f"task {view.task}"
        case EventView():
            return f"event {view.event}"
    return "figures"


def _call(node: CallNode) -> str:
    call = node.call
    layer = "" if call.layer is None else f"layer {call.layer}, "
    noun = "task" if call.tasks == 1 else "tasks"
    words = [f"{_name(call.task_type)} variant {call.variant}", f"{layer}{noun} {tasks_of(call)}"]
    color = ""
    if call.never_run:
        never = "never runs" if call.tasks == 1 else "never run"
        words.append(never if call.never_run == call.tasks else f"{call.never_run:,} {never}")
        color = ', color="#cf222e", fontcolor="#82071e"'
    fill = "#fff8c5" if node.focus else "#f6f8fa"
    pen = ", penwidth=2" if node.focus else ""
    return f'c{call.call} [shape=box, style="rounded,filled", fillcolor="{fill}", label={_label(words)}{color}{pen}, sortv={call.call + 1}];'


def _event(node: EventNode) -> str:
    words = [f"event{'' if len(node.events) == 1 else 's'} {some(ranges(node.events).split(', '), 4)}"]
    counts = [
        f"{gets:,} of {waits:,}" for gets, waits in dict.fromkeys(zip(node.gets, node.waits, strict=True))
    ]
    words.append(counts[0] if len(counts) == 1 else f"{some(counts, 2)}")
    if node.tagged:
        words.append("by other ranks' puts")
    if node.more_producers:
        words.append(f"from {count(node.more_producers, 'more call')}")
    if node.more_consumers:
        words.append(f"to {count(node.more_consumers, 'more call')}")
    color = "" if node.fires else ', color="#cf222e", fontcolor="#82071e"'
    fill = "#fff8c5" if node.focus else "white" if node.fires else "#ffebe9"
    pen = ", penwidth=2" if node.focus else ""
    return (
        f'e{node.number} [shape=ellipse, margin="0.02,0.02", style=filled, fillcolor="{fill}",'
        f" label={_label(words)}{color}{pen}];"
    )


def _ends(edge: Edge) -> tuple[str, str]:
    """The names of the nodes at the ends of an edge."""
    source = "e" if edge.kind is EdgeKind.WAIT else "c"
    target = "e" if edge.kind is EdgeKind.TRIGGER else "c"
    return f"{source}{edge.source}", f"{target}{edge.target}"


def _edge(edge: Edge, *, minlen: int) -> str:
    source, target = _ends(edge)
    words = [_name(tensor) for tensor in edge.tensors[:_TENSORS]]
    if len(edge.tensors) > _TENSORS:
        words.append(f"and {len(edge.tensors) - _TENSORS} more")
    if edge.tasks is not None:
        words.append(count(edge.tasks, "task"))
    label = f"label={_label([f' {word}' for word in words])}" if words else ""
    style = 'style=dashed, color="#0550ae"' if edge.kind is EdgeKind.DATA else ""
    # dot drops labels between neighbouring ranks when it lays out pieces by themselves.
    length = f"minlen={minlen}" if words and minlen > 1 else ""
    attributes = ", ".join(part for part in (label, style, length) if part)
    return f"{source} -> {target}{f' [{attributes}]' if attributes else ''};"


def _name(text: str) -> str:
    return name(text, _NAME_LIMIT)


def _label(lines: Sequence[str], justify: str = "n") -> str:
    """A quoted string of lines, centred (`n`) or left (`l`); the text of each is shown as it is."""
    return '"' + "".join(f"{_quoted(line)}\\{justify}" for line in lines).removesuffix("\\n") + '"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("&", "&amp;")
