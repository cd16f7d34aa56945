"""`mkcov show`: what surrounds a tensor, a task, an event, an operator or a layer of one rank."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mkcov_action.commands._one_rank import read_rank, uncollected
from mkcov_action.commands._output import wants_color, write, write_file
from mkcov_action.commands._selection import Selection, views_of
from mkcov_action.config import Config
from mkcov_action.finding import Artifact
from mkcov_action.github import workspace
from mkcov_action.megakernel import Rank
from mkcov_action.neighbourhood.drawing import drawing_of
from mkcov_action.neighbourhood.model import Shown
from mkcov_action.neighbourhood.sight import Sight
from mkcov_action.reporters import show_dot, show_json, show_text


@click.command(
    short_help="Look around in one rank.",
    epilog="What is named may be given several times and together. Exit codes: 0 it was shown; 2 wrong usage,"
    " an unknown name, or a rank that cannot be read; 3 an internal error.",
)
@click.argument("directory", default=".", metavar="[DIRECTORY]")
@click.option(
    "--tensor",
    "tensors",
    multiple=True,
    metavar="NAME",
    help="Who writes and reads this tensor, in order, with events and byte ranges. A glob shows all that match.",
)
@click.option(
    "--operator",
    "operators",
    multiple=True,
    metavar="NAME",
    help="The calls of this task type, with or without TASK_; :N behind it picks a variant. A glob will do.",
)
@click.option(
    "--layer",
    "layers",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="The calls of this layer.",
)
@click.option(
    "--task",
    "tasks",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="This task: its slots, metadata and events, and whether it runs.",
)
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.IntRange(min=0),
    metavar="N",
    help="This event, by its position or by its id: who triggers it, who waits for it, and whether it fires.",
)
@click.option("--stats", is_flag=True, help="The figures of the rank; the default if nothing is named.")
@click.option(
    "--rank", type=click.IntRange(0, 65_535), metavar="N", help="Show this rank. Default: the lowest."
)
@click.option("--all", "everything", is_flag=True, help="Fold no layers and leave nothing out.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, in full; see `mkcov schema --show`.")
@click.option(
    "--dot",
    "dot_file",
    metavar="FILE",
    help="Draw what is named and what surrounds it for Graphviz; - for standard output.",
)
@click.option(
    "--task-types",
    metavar="HEADER",
    type=click.Path(path_type=Path),
    help="Read the names of task types from this runtime_header.h.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the text; auto: on a terminal, unless NO_COLOR is set.",
)
def show(
    *,
    directory: str,
    tensors: tuple[str, ...],
    operators: tuple[str, ...],
    layers: tuple[int, ...],
    tasks: tuple[int, ...],
    events: tuple[int, ...],
    stats: bool,
    rank: int | None,
    everything: bool,
    as_json: bool,
    dot_file: str | None,
    task_types: Path | None,
    color: str,
) -> None:
    """Look around in one rank of the graph in DIRECTORY (default: the working directory).

    Reads that rank only. Layers that are alike are shown once.
    """
    selection = Selection(
        stats=stats, tensors=tensors, operators=operators, layers=layers, tasks=tasks, events=events
    )
    _check(selection, as_json=as_json, dot_file=dot_file)
    config = Config(paths=(directory,), root=workspace() or Path.cwd(), task_types=task_types)
    with uncollected():
        graph, found = read_rank(config, rank)
        sight = Sight(found)
        shown = _shown(graph, found, sight, selection)
        drawing = "" if dot_file is None else show_dot.render(shown, drawing_of(sight, shown.shown))
        out = sys.stdout
        if dot_file == "-":
            write(sys.stdout, drawing)
            out = sys.stderr  # standard output is then the drawing's
        elif dot_file and (reason := write_file(Path(dot_file), drawing)):
            raise click.ClickException(f"cannot write --dot {dot_file}: {reason}")
        if as_json:
            write(out, show_json.render(shown))
        else:
            write(out, show_text.render(shown, everything=everything, color=wants_color(out, color)))


def _check(selection: Selection, *, as_json: bool, dot_file: str | None) -> None:
    if dot_file is None:
        return
    if not dot_file:
        raise click.BadParameter("the name of a file is empty", param_hint="--dot")
    if not selection.named:
        raise click.UsageError("--dot draws a neighbourhood: name a tensor, operator, layer, task or event")
    if as_json and dot_file == "-":
        raise click.UsageError("--json and --dot both go to standard output")


def _shown(graph: str, rank: Rank, sight: Sight, selection: Selection) -> Shown:
    return Shown(
        graph=graph,
        rank=rank.number,
        world_size=rank.kernel.world_size if rank.kernel else None,
        kernel=rank.uri(Artifact.KERNEL),
        task_graph=rank.uri(Artifact.TASK_GRAPH),
        tasks=len(rank.graph),
        events=len(rank.graph.events),
        shown=views_of(sight, selection),
    )
