"""Compiled scans, for models where NumPy is not the machine's limit. All of them are optional."""
