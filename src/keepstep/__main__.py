"""`python -m keepstep` is the script `keepstep`."""

from keepstep.cli import main

main()
