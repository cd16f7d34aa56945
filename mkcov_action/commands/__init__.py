"""The command line: one module a subcommand."""

from __future__ import annotations

import click

from mkcov_action import __version__
from mkcov_action.commands.check import check

_EPILOG = "For a megakernel that compiles, exits 0 and talks nonsense, run `mkcov check GENERATED_DIR` first."


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, prog_name="mkcov", message="%(prog)s %(version)s")
def cli() -> None:
    """Prove, without a GPU, that a Mirage megakernel is wired.

    Reads the kernel_<rank>.cu and task_graph_<rank>.json that the generator writes for each rank.
    """


cli.add_command(check)
