"""The store's options: what SQLite could not be told is refused."""

import math

import pytest

from klaw_store_sqlitevec.options import SqliteOptions


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf])
def test_an_invalid_busy_timeout_is_rejected(seconds: float) -> None:
    with pytest.raises(ValueError, match="busy_timeout_seconds"):
        SqliteOptions(busy_timeout_seconds=seconds)
