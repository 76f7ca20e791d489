"""Model files: `save`, `load` and `describe`. Loading runs no code of a file: see `doc/model_files.md`."""

from riskbayes.persistence.files import describe, load, save

__all__ = ["describe", "load", "save"]
