"""`python -m traindx` is the `traindx` command."""

from traindx.cli.main import main

main()
