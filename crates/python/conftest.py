"""Examples in docstrings begin with the package imported."""

import pytest

import progap


@pytest.fixture(autouse=True)
def _imported(doctest_namespace):
    doctest_namespace["progap"] = progap
