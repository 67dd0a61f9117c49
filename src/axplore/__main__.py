"""The command line, also as `python -m axplore`."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line; Ctrl-C while it is being imported ends it quietly."""
    try:
        from axplore.cli import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
