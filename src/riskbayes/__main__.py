"""`python -m riskbayes` is the command `riskbayes`."""

from riskbayes.entry import main

main()
