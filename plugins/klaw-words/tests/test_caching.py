"""What a cache keeps."""

from __future__ import annotations

import numpy as np

from klaw_words.caching import Kept


def test_the_least_recently_used_values_leave_first() -> None:
    kept = Kept(300)
    for name in ("a", "b", "c"):
        kept.put(name, np.zeros(100, np.uint8))
    assert kept.get("a") is not None
    kept.put("d", np.zeros(50, np.uint8))
    assert [value is not None for value in kept.get_all("abcd")] == [True, False, True, True]
    kept.put("c", np.zeros(150, np.uint8))
    assert [value is not None for value in kept.get_all("acd")] == [True, True, True]


def test_a_value_larger_than_the_cache_is_kept_alone() -> None:
    kept = Kept(10)
    kept.put("small", np.zeros(5, np.uint8))
    kept.put("large", np.zeros(50, np.uint8))
    assert kept.get("small") is None
    assert kept.get("large") is not None


def test_a_dropped_value_makes_room() -> None:
    kept = Kept(100)
    kept.put("a", np.zeros(100, np.uint8))
    kept.drop(["a", "unknown"])
    assert kept.get("a") is None
    kept.put("b", np.zeros(50, np.uint8))
    kept.put("c", np.zeros(50, np.uint8))
    assert kept.get("b") is not None
