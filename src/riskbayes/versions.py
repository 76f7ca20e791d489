"""The versions that a result depends on."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import riskbayes

PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "pyarrow")


def versions() -> dict[str, str]:
    """Return the versions of this package, of Python, and of the packages below it that are installed."""
    found = {"riskbayes": riskbayes.__version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # not installed, or imported from a folder
            continue
    return found
