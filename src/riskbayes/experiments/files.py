"""The user's files: what is wrong with one is said in a sentence that names it."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from riskbayes.experiments import ExperimentError


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise what goes wrong with a file that is being read as an ExperimentError.

    Parameters
    ----------
    path : Path
        The file, which the message names.
    """
    refuse_folder(path)
    try:
        yield
    except EOFError as error:
        raise ExperimentError(
            f"{path} is cut short: its compressed data end too early. Copy or download it again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ExperimentError(
            f"{path} cannot be read as gzip ({error}). Compress the table with gzip, or copy it again."
        ) from error
    except UnicodeDecodeError as error:
        raise ExperimentError(f"{path} is no text in UTF-8. Save it as such.") from error
    except csv.Error as error:
        raise ExperimentError(f"{path} cannot be read as CSV ({error}). Save it as such.") from error
    except OSError as error:
        raise ExperimentError(
            f"Cannot read {path} ({error.strerror or error}). Check that it is there and may be read."
        ) from error


def refuse_folder(path: Path) -> None:
    """Raise an ExperimentError where a folder stands in the place of a file."""
    if path.is_dir():
        raise ExperimentError(f"{path} is a folder, where a file is needed. Move it away or rename it.")
