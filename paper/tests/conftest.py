"""Fixtures of the library's tests, which the folder `tests` has."""

from conftest import browser, paper_folder  # noqa: F401
