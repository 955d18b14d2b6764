"""The windows of snippets are chosen as long as there is time, and somebody can tell."""

import pytest

from klaw_core.cli import windows
from klaw_core.cli.windows import WindowChooser


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that stands still until it is set."""

    class Clock:
        now = 0.0

        def monotonic(self):
            return self.now

    made = Clock()
    monkeypatch.setattr(windows, "time", made)
    return made


def test_a_chooser_that_cannot_answer_is_called_once():
    asked = []
    choose = WindowChooser(asked.append)
    assert [choose(["a", "b"]), choose(["c", "d"])] == [None, None]
    assert asked == [["a", "b"]]


def test_the_chooser_is_not_called_without_time():
    assert WindowChooser(lambda _: 1, seconds=60.0)(["a", "b"]) == 1
    assert WindowChooser(len, seconds=-1.0)(["a", "b"]) is None


@pytest.mark.parametrize(
    ("count", "places"), [(2, [0, 1]), (6, [0, 1, 2, 3, 4, 5]), (7, [0, 2, 4, 6]), (8, [0, 2, 4, 6, 7])]
)
def test_half_of_many_windows_cover_the_text(count, places):
    """Neighbours overlap by half: every second window, with the last, holds everything."""
    asked = []

    def last(texts):
        asked.extend(texts)
        return len(texts) - 1

    assert WindowChooser(last)([str(place) for place in range(count)]) == count - 1
    assert asked == list(map(str, places))


def test_the_chooser_is_not_called_again_if_it_would_be_late(clock):
    asked = []

    def slow(texts):
        clock.now += 0.02 * len(texts)
        asked.append(len(texts))
        return 0

    choose = WindowChooser(slow, seconds=0.1)
    assert choose(["a"] * 3) == 0  # .06 s
    assert choose(["b"] * 5) is None
    assert choose(["c"] * 2) == 0
    assert asked == [3, 2]
    assert WindowChooser.of_server(slow)(["a"] * 9) == 0  # the first is always asked about
