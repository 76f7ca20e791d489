"""Commands that this package adds to `riskbayes`: its entry points name them."""
