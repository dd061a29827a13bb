"""rbloom's suite is a program of one function; its parts, each as a test."""

import api_test
import pytest
from rbloom import Bloom

ARGUMENTS = ((13242, 0.0000001), (9874124, 0.01, api_test.sha_based), (2837, 0.5))


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=["default", "own-hash", "half"])
def test_bloom(arguments):
    api_test.test_bloom(Bloom(*arguments))


@pytest.mark.parametrize("name", ["api_suite", "circular_ref", "operations_with_self"])
def test_part(name):
    getattr(api_test, name)()
