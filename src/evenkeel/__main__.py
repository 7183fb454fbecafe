"""`python -m evenkeel` is the `evenkeel` command."""

from evenkeel.cli import main

main()
