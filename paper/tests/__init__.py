"""Tests of the package of the paper; a package, so that its conftest is not taken for the library's."""
