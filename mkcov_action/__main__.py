"""`python -m mkcov_action` and the console script `mkcov`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Runs the command line; ends the process with its exit code."""
    gc.disable()  # a short life and hardly a cycle: the collector would only walk what was read
    try:
        from mkcov_action.commands import cli  # noqa: PLC0415 - an interrupt may come this early
    except KeyboardInterrupt:
        sys.exit(130)
    cli(prog_name="mkcov")


if __name__ == "__main__":
    main()
