"""Which versions of Klaw's distributions may be mixed: tests/house/metadata.py writes these bounds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "house" / "metadata.py"


@pytest.fixture(scope="module")
def metadata() -> Any:
    specification = importlib.util.spec_from_file_location("metadata_of_distributions", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "bounds"),
    [("0.1.0", ">=0.1.0,<0.2"), ("0.9.3", ">=0.9.3,<0.10"), ("1.0.0", ">=1.0.0,<2"), ("2.7.1", ">=2.7.1,<3")],
)
def test_a_version_is_mixed_with_those_before_the_next_that_may_break_something(
    metadata: Any, version: str, bounds: str
) -> None:
    assert metadata.bounds(version) == bounds


def test_a_requirement_of_another_distribution_is_bounded_and_any_other_stays(metadata: Any) -> None:
    text = 'name = "klaw-http"\ndependencies = ["klaw", "klaw-http>=0.0.1", "klaw-documents[code]", "httpx>=0.27"]\n'
    bounds = metadata.bounds("0.1.0")
    assert metadata._bounded(text, "0.1.0") == (
        f'name = "klaw-http"\ndependencies = ["klaw{bounds}", "klaw-http{bounds}", '
        f'"klaw-documents[code]{bounds}", "httpx>=0.27"]\n'
    )
