"""A key digest tells sets of keys apart without listing them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from klaw_core import KeyDigest

keys = st.sets(st.integers(1, 2**53))
small = st.sets(st.integers(1, 40), max_size=2)


def key_digest(values):
    return KeyDigest.of(np.array(sorted(values), dtype=np.int64))


@given(keys, keys)
def test_digests_of_disjoint_sets_add_up(first, second):
    assert key_digest(first) + key_digest(second - first) == key_digest(first | second)


@given(st.sets(st.integers(41, 2**31 - 2)), small, small)
def test_two_different_keys_on_each_side_are_always_detected(common, lacking, stale):
    assert (key_digest(common | lacking) == key_digest(common | stale)) == (lacking == stale)
