"""How one pass over encoded rows is computed: in chunks, by compiled code, on sparse rows, without some."""

from riskbayes.scanners.dense import Scanner

__all__ = ["Scanner"]
