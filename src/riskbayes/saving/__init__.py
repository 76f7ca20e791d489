"""Model files: `save`, `load` and `describe`. Loading runs no code of the file; `doc/model_files.md` says how."""

from riskbayes.saving.files import describe, load, save

__all__ = ["describe", "load", "save"]
