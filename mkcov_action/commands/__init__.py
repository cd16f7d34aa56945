"""The command line: one module a subcommand, imported when it is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from mkcov_action import __version__

_EPILOG = "For a megakernel that compiles, exits 0 and talks nonsense, run `mkcov check GENERATED_DIR` first."

INTERRUPTED = 130
"""The exit code of a process that was ended by an interrupt, as shells count it."""


_COMMANDS = ("action", "check", "explain", "rules", "schema", "selftest", "show")


class Cli(click.Group):
    """Ends every run with one of the documented exit codes and, at worst, one line of why."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all subcommands."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a subcommand's module: `mkcov --version` needs none of them."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(
            importlib.import_module(f"mkcov_action.commands.{cmd_name}"), cmd_name
        )
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Takes no arguments in a workflow for the action: it has its settings from the environment."""
        if not args:
            from mkcov_action.github import in_workflow  # noqa: PLC0415 - not for every start

            args = ["action"] if in_workflow() else []
        return super().parse_args(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Runs a command; what click would print or raise is cleaned and counted first."""
        try:
            code = super().main(*args, **{**kwargs, "standalone_mode": False})
        except click.exceptions.NoArgsIsHelpError as error:
            _say(error.ctx.get_help())
            code = 2  # nothing was audited
        except click.ClickException as error:
            if isinstance(error, click.UsageError) and error.ctx:
                _say(error.ctx.get_usage())
            _say("Error: ", error.format_message())
            code = 2
        except (click.Abort, KeyboardInterrupt):
            _say("mkcov: interrupted")
            code = INTERRUPTED
        except Exception as error:  # noqa: BLE001 - a bug of ours, told in one line
            from mkcov_action.finding import describe  # noqa: PLC0415

            _say("mkcov: internal error: ", describe(error))
            code = 3
        sys.exit(code)


def _say(words: str, untrusted: str = "") -> None:
    """Prints a line of ours to standard error, and what follows it cleaned."""
    from mkcov_action.commands._output import write  # noqa: PLC0415 - not for every start
    from mkcov_action.reporters.clean import clean  # noqa: PLC0415

    write(sys.stderr, f"{words}{clean(untrusted, limit=2000)}\n")


@click.group(cls=Cli, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(__version__, prog_name="mkcov", message="%(prog)s %(version)s")
def cli() -> None:
    """Prove, without a GPU, that a Mirage megakernel is wired.

    Reads the kernel_<rank>.cu and task_graph_<rank>.json that the generator writes for each rank.
    """
