"""Random fits of every estimator, held to laws. `tests/fuzz.py` is the command."""
