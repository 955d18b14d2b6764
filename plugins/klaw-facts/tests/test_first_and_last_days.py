"""A message may state any date that Python has: none of them stops the facts of the others."""

from datetime import UTC, datetime, timedelta

import pytest

from klaw_core import Memory, load_config
from klaw_facts import Facts
from klaw_facts.validity import later_by, unit_end
from klaw_journals import Message

FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
SAID = (
    "I moved to Rome yesterday.",
    "I live in Oslo since last week.",
    "Tomorrow I start at the shipyard.",
    "I will move to Lyon next month.",
    "My deadline is next Friday.",
    "I lived in Paris two years ago.",
    "Next year I move to Bergen.",
    "Since last year I work at the harbour.",
)


@pytest.mark.parametrize("moment", [FIRST, FIRST + timedelta(9), LAST - timedelta(30), LAST])
def test_facts_are_kept_and_extracted_on_it(moment, tmp_path):
    config = load_config(data_dir=tmp_path, environment={"KLAW_EMBEDDER": "none"})
    with Memory.open(config) as memory:
        facts = memory.extension("facts")
        for number, text in enumerate(SAID):
            meta = {"channel": "telegram", "chat_id": "1"}
            memory.conversations.append(Message("user", text, moment, f"m{number}", meta=meta))
            facts.remember(text, valid_from=moment)
        facts.extract()
        memory.index()
        facts.compress()
        for asked in ("where do I live", "where did I live last week", "what will be tomorrow", "what was in 9999"):
            memory.context(asked)
            memory.context(asked, as_of=moment)
        assert facts.history()


@pytest.mark.parametrize("moment", [LAST, datetime.max.replace(tzinfo=UTC)])
def test_a_fact_may_end_on_the_last_day(moment, open_memory):
    keeper = open_memory().extension(Facts).keeper
    name = keeper.remember("I live in Paris", valid_from=FIRST).id
    end = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    assert keeper.end(name, moment).valid_to == end
    assert keeper.reopen(name).valid_to is None
    assert keeper.edit(name, valid_to=moment).valid_to == end
    assert keeper.edit(name, valid_from=moment).valid_from == end


@pytest.mark.parametrize("precision", ["day", "week", "month", "year"])
def test_the_last_unit_ends_with_time(precision):
    assert unit_end(LAST, precision) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(("year", "end"), [(2024, 2025), (2025, 2026), (9998, 9999)])
def test_a_year_ends_with_the_next(year, end):
    assert unit_end(datetime(year, 3, 1, tzinfo=UTC), "year") == datetime(end, 1, 1, tzinfo=UTC)
    assert unit_end(datetime(year, 12, 5, tzinfo=UTC), "month") == datetime(end, 1, 1, tzinfo=UTC)
    assert later_by(datetime(year, 1, 1, tzinfo=UTC), timedelta(1)) == datetime(year, 1, 2, tzinfo=UTC)
