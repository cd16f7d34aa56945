"""Builds a decoder's artifacts, clean or with its rotary tables unwired: `python -m tools.graph_builder -h`.

The module to import for graphs of one's own; see GraphBuilder.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from tools.builder import (
    BuilderError,
    Compression,
    GraphBuilder,
    Naming,
    Operator,
    Tensor,
    Tile,
    decoder,
    write_ranks,
)
from tools.builder.decoder import AllReduce, Attention, Sizes

__all__ = ["BuilderError", "GraphBuilder", "Operator", "Tensor", "Tile", "decoder", "write_ranks"]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.argument("out", type=click.Path(file_okay=False, path_type=Path))
@click.option("--layers", type=click.IntRange(min=1), default=2, help="Decoder layers.")
@click.option("--ranks", type=click.IntRange(min=1), default=1, help="Tensor-parallel ranks.")
@click.option(
    "--tasks",
    type=click.IntRange(min=1),
    help="Widen the linear layers until each rank has at least so many tasks.",
)
@click.option(
    "--batch", type=click.IntRange(min=1), default=Sizes().batch, help="Rows, one task of a norm each."
)
@click.option(
    "--splits",
    type=click.IntRange(min=1),
    default=Sizes().splits,
    help="Tasks of latent attention's decode and reduce, which all name the same tiles.",
)
@click.option("--unwired", is_flag=True, help="Attach rope_cos and rope_sin, but attend without them.")
@click.option(
    "--attention",
    type=click.Choice(get_args(Attention)),
    default="mla",
    help="Latent attention, or paged attention with rotary slots of its own.",
)
@click.option(
    "--all-reduce",
    type=click.Choice(get_args(AllReduce)),
    default="tile",
    help="How several ranks sum: by multicast tiles, or by puts and reductions under tagged events.",
)
@click.option(
    "--naming",
    type=click.Choice(get_args(Naming)),
    default="kernel",
    help="kernel_0.cu and task_graph_0.json, test_rank0.cu and task_graph_rank0.json, or test.cu and"
    " task_graph.json (one rank only).",
)
@click.option("--compress", type=click.Choice(get_args(Compression)), help="Compress every file.")
def main(
    *,
    out: Path,
    layers: int,
    ranks: int,
    tasks: int | None,
    batch: int,
    splits: int,
    unwired: bool,
    attention: Attention,
    all_reduce: AllReduce,
    naming: Naming,
    compress: Compression | None,
) -> None:
    """Write the kernel and the task graph of each rank of a small decoder into OUT.

    The graph is clean under every rule; --unwired leaves out what reads the rotary tables, so that
    `mkcov check OUT` names them. Equal options write equal bytes.
    """
    try:
        builders = decoder(
            layers=layers,
            ranks=ranks,
            tasks=tasks,
            wired=not unwired,
            attention=attention,
            all_reduce=all_reduce,
            sizes=Sizes(batch=batch, splits=splits),
        )
        paths = write_ranks(builders, out, naming, compress, compress)
    except BuilderError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot write to {out}: {error.strerror or error}") from error
    plan = builders[0].plan()
    size = sum(path.stat().st_size for path in paths)
    click.echo(
        f"{out}: {ranks} rank{'s' * (ranks > 1)}, {plan.tasks:,} tasks and {len(plan.events):,} events each,"
        f" {size:,} bytes"
    )


if __name__ == "__main__":
    main()
