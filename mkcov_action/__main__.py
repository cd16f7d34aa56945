"""`python -m mkcov_action` and the console script `mkcov`."""

from __future__ import annotations

from mkcov_action.commands import cli


def main() -> None:
    """Runs the command line; ends the process with its exit code."""
    cli(prog_name="mkcov")


if __name__ == "__main__":
    main()
