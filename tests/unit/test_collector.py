"""What the collection of tests makes is not looked at for garbage again and again."""

import gc


def test_garbage_is_looked_for_where_tests_make_some():
    assert gc.isenabled()
    assert gc.get_threshold()[0] == 50_000
    assert gc.get_freeze_count() > 10_000  # many more where all tests were collected
