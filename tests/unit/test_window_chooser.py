"""The windows of snippets are chosen as long as there is time, and somebody can tell."""

from klaw_core.cli.windows import WindowChooser


def test_who_cannot_tell_is_asked_once():
    asked = []
    choose = WindowChooser(asked.append)
    assert [choose(["a", "b"]), choose(["c", "d"])] == [None, None]
    assert asked == [["a", "b"]]


def test_without_time_nobody_is_asked():
    assert WindowChooser(len, seconds=60.0)(["a", "b"]) == 2
    assert WindowChooser(len, seconds=-1.0)(["a", "b"]) is None
