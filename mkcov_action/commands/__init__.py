"""The command line: one module a subcommand."""

from __future__ import annotations

import sys
from typing import Any

import click

from mkcov_action import __version__
from mkcov_action.commands._output import write
from mkcov_action.commands.action import action
from mkcov_action.commands.check import check
from mkcov_action.commands.explain import explain
from mkcov_action.commands.rules import rules
from mkcov_action.commands.schema import schema
from mkcov_action.finding import describe
from mkcov_action.github import in_workflow
from mkcov_action.reporters.clean import clean

_EPILOG = "For a megakernel that compiles, exits 0 and talks nonsense, run `mkcov check GENERATED_DIR` first."

INTERRUPTED = 130
"""The exit code of a process that was ended by an interrupt, as shells count it."""


class Cli(click.Group):
    """Ends every run with one of the documented exit codes and, at worst, one line of why."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Takes no arguments in a workflow for the action: it has its settings from the environment."""
        return super().parse_args(ctx, args or (["action"] if in_workflow() else []))

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs a command; what click would print or raise is cleaned and counted first."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            write(sys.stderr, f"{error.ctx.get_help()}\n")
            code = 2  # nothing was audited
        except click.ClickException as error:
            if isinstance(error, click.UsageError) and error.ctx:
                write(sys.stderr, f"{error.ctx.get_usage()}\n")
            write(sys.stderr, f"Error: {clean(error.format_message(), limit=2000)}\n")
            code = 2
        except (click.Abort, KeyboardInterrupt):
            write(sys.stderr, "mkcov: interrupted\n")
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - a bug of ours, told in one line
            write(sys.stderr, f"mkcov: internal error: {clean(describe(error), limit=2000)}\n")
            code = 3
        sys.exit(code)


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, prog_name="mkcov", message="%(prog)s %(version)s")
def cli() -> None:
    """Prove, without a GPU, that a Mirage megakernel is wired.

    Reads the kernel_<rank>.cu and task_graph_<rank>.json that the generator writes for each rank.
    """


for command in (action, check, explain, rules, schema):
    cli.add_command(command)
