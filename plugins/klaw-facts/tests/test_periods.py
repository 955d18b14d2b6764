"""No change lets a fact end before the day on which it begins, and no value of a moment raises anything unexpected."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from klaw_core import RecordError
from klaw_facts import Fact, Facts, FactsOptions, Quote
from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, fold
from klaw_facts.records import fact_record, operation
from klaw_facts.validity import later_by
from klaw_journals import format_ts

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(1)
MOMENTS = [
    *(datetime.min.replace(tzinfo=UTC), MARCH - DAY, MARCH, MARCH + DAY, datetime.max.replace(tzinfo=UTC)),
    *("2026-02-01T00:00:00Z", "9999-12-31T23:59:59Z", "soon", "", 7, True, None, MARCH.replace(tzinfo=None)),
]


@pytest.fixture
def keeper(open_memory):
    return open_memory().extension(Facts).keeper


def changes(keeper, name):
    """Yield every change of the period of a fact."""
    for moment in MOMENTS:
        yield lambda moment=moment: keeper.end(name, moment)
        yield lambda moment=moment: keeper.edit(name, valid_from=moment)
        yield lambda moment=moment: keeper.edit(name, valid_to=moment)
    for first, last in product(MOMENTS, MOMENTS):
        yield lambda first=first, last=last: keeper.edit(name, valid_from=first, valid_to=last)


def test_every_change_of_a_period_is_made_or_refused(keeper):
    name = keeper.remember("I live in Paris", valid_from=MARCH).id
    refused = 0
    for change in changes(keeper, name):
        before = keeper.get(name)
        try:
            fact = change()
        except RecordError:
            refused += 1
            assert keeper.get(name) == before
        else:
            assert None in {fact.valid_from, fact.valid_to} or later_by(fact.valid_to, DAY) > fact.valid_from
            keeper.reopen(name)
            keeper.edit(name, valid_from=MARCH)
    assert 100 < refused < len(MOMENTS) * (len(MOMENTS) + 3) - 50


def test_a_fact_that_begins_later_does_not_end_now(keeper):
    name = keeper.remember("I live in Oslo", valid_from=datetime.now(UTC) + 9 * DAY).id
    with pytest.raises(RecordError, match=rf"before the begin .*`klaw facts retract {name}`"):
        keeper.end(name)
    assert keeper.retract(name).retracted_at is not None


def test_a_proposed_end_is_not_accepted_before_the_begin(keeper):
    name = keeper.remember("I live in Paris", valid_from=MARCH).id
    resolver = Resolver(keeper.journal.state(), keeper.options, MARCH + 9 * DAY, "rules", "b-1")
    begin = MARCH + 9 * DAY
    resolver.add(Fact("f-oslo", "I live in Oslo", slot="home", value="Oslo", valid_from=begin, precision="day"))
    keeper.journal.append(resolver.finish())
    (proposal,) = keeper.review()
    keeper.edit(name, valid_from=MARCH + 20 * DAY)
    with pytest.raises(RecordError, match="before the begin"):
        keeper.decide(proposal.id, accept=True)
    assert keeper.review() == [proposal]
    assert keeper.get(name).valid_to is None
    keeper.edit(name, valid_from=MARCH)
    assert keeper.decide(proposal.id, accept=True).valid_to == proposal.valid_to


@pytest.mark.parametrize("slot", ["home", None])
def test_what_a_model_says_ends_a_fact_no_earlier_than_it_was_last_true(slot):
    def said(name, day, begin, precision):
        quotes = (Quote("tg_1", name, 0, 9),)
        given = {"slot": slot, "value": name, "valid_from": begin, "precision": precision, "quotes": quotes}
        return Fact(name, f"I like {name}", person="tg:1", said_at=day, made_by="rules", **given)

    old = said("f-tea", MARCH, MARCH if slot else None, "by" if slot else "unknown")
    new = said("f-milk", MARCH + 9 * DAY, MARCH - 40 * DAY, "day")
    resolver = Resolver(State(), FactsOptions(slots={"home": "many"}), MARCH + 9 * DAY, "model:m", "b-1")
    resolver.end(resolver.add(old), resolver.add(new), "model")
    assert fold(resolver.finish()).facts["f-tea"].valid_to == MARCH


@pytest.mark.parametrize(("by", "begin"), [("rules", MARCH), ("agent", MARCH), ("person", MARCH + 3 * DAY)])
def test_only_a_person_changes_when_a_fact_of_a_person_began(by, begin):
    mine = Fact("f-oslo", "I live in Oslo", slot="home", value="Oslo", valid_from=MARCH, precision="month")
    other = Fact("f-lyon", "I live in Lyon", slot="home", value="Lyon", valid_from=MARCH + 2 * DAY, made_by="rules")
    told = {"fact": other.id, "by_fact": mine.id, "reason": "slot", "valid_to": format_ts(MARCH + 3 * DAY)}
    asserted = [fact_record(fact, MARCH + 9 * DAY) for fact in (mine, other)]
    facts = fold([*asserted, operation("end", MARCH + 9 * DAY, by=by, precision="by", **told)]).facts
    assert (facts[other.id].ended_by, facts[mine.id].valid_from) == (mine.id, begin)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("I met Bob in May.", "2026-05"),
        ("I will meet Ann in May.", "2027-05"),
        ("I met Bob last weekend.", "2026-11"),
        ("I was born in 1985.", "1985"),
        ("I met Bob on 3 May 2020.", "2020-05-03"),
        ("I met Bob on 5 May.", None),
        ("I will meet Ann on 5 May.", "2027-05-05"),
        ("I sat next to Ann on 5 May.", None),
        ("I will have met Ann on 5 May.", None),
        ("I need to repair what broke on 5 May.", None),
        ("I met Bob between 3 and 5 May.", None),
        ('I read "Yesterday" by the Beatles in May.', "2026-05"),
        ("I met Bob a year ago today.", None),
        ("我上上周买了船。", "2026-11"),
    ],
)
def test_a_fact_has_as_much_of_a_date_as_is_known(text, when):
    window = [SourceMessage("tg_1", "m1", "user", "user", text, datetime(2026, 11, 25, 10, tzinfo=UTC), "tg:1")]
    (fact,) = [make_fact(candidate, window) for candidate in rule_extractor.extract(window)]
    assert fact.metadata.get("when") == when
