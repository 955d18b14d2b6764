"""Below the best chunk of a note stands where else in it something was found: a few places, and how many more."""

from datetime import UTC, datetime

from attrs import evolve

from klaw_core.cli.results import ResultStyle, show_one
from klaw_core.values.search import SearchResult


class Lines:
    def __init__(self):
        self.shown = []

    def line(self, *parts, indent=0):
        self.shown.append(" " * indent + "".join(map(str, (getattr(part, "text", part) for part in parts))))

    def rows(self, rows, **_options):
        self.shown.extend(map(str, rows))


def shown(places):
    also = tuple(f"notes/a.md:{first}-{first + 3}" for first in range(10, 10 + 10 * places, 10))
    when = datetime(2026, 2, 24, tzinfo=UTC)
    result = SearchResult("harbour", "notes/a.md", 1, 2, (), 0.5, "a.md", when, "id", also=also)
    out = Lines()
    show_one(out, result, ResultStyle("harbour"))
    return out.shown[-1].strip()


def test_few_places_are_all_named():
    assert shown(2) == "also in lines 10-13, 20-23"


def test_of_many_places_five_are_named():
    assert shown(8) == "also in lines 10-13, 20-23, 30-33, 40-43, 50-53 and 3 more places"


def test_a_score_is_not_shown_as_a_relevance():
    when = datetime(2026, 2, 24, tzinfo=UTC)
    result = SearchResult("harbour", "notes/a.md", 1, 2, (), 0.0102, "a.md", when, "id")
    lines = []
    for relevance in (0.98, None):
        out = Lines()
        show_one(out, evolve(result, relevance=relevance), ResultStyle("harbour"))
        lines.append(out.shown[0].strip())
    assert lines == ["notes/a.md:1-2  0.98", "notes/a.md:1-2"]
