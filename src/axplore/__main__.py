"""`python -m axplore` is the command line."""

from axplore.cli import main

main()
