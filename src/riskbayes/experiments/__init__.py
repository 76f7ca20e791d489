"""Experiments: what is run, the tables and pictures that come of it, and the pages that show them."""
