"""Model files: `save`, `load` and `describe`; and the values of a fit as bytes by the same rules.

Reading runs no code of a file: see `doc/model_files.md`.
"""

from riskbayes.persistence.codec import from_bytes, to_bytes
from riskbayes.persistence.files import describe, load, save

__all__ = ["describe", "from_bytes", "load", "save", "to_bytes"]
