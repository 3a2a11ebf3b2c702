"""`python -m muniment`: the command line."""

from muniment._cli import main

main()
