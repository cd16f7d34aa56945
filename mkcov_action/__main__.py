"""`python -m mkcov_action` and the console script `mkcov`."""

from __future__ import annotations

import gc

from mkcov_action.commands import cli


def main() -> None:
    """Runs the command line; ends the process with its exit code."""
    gc.disable()  # a short life and hardly a cycle: the collector would only walk what was read
    cli(prog_name="mkcov")


if __name__ == "__main__":
    main()
