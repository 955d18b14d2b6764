"""Stories of lives: what is true at each moment is what the person said, and nothing that is still true has ended.

A story has values that follow each other, and a person who tells them truthfully: at once or later, with the day, with
a week, month or year, without a date, before they begin, or wrong and then corrected. The oracle knows the days on
which values changed and bounds, from the dates alone, what a listener can know of them.
"""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from attrs import frozen

from klaw_facts import FactsOptions
from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import make_fact
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.fold import State, fold
from klaw_facts.validity import validity

START = datetime(2025, 1, 6, tzinfo=UTC)
DAY = timedelta(1)
STORIES = 10_000
MONTHS = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "ru": [
        "января",
        "февраля",
        "марта",
        "апреля",
        "мая",
        "июня",
        "июля",
        "августа",
        "сентября",
        "октября",
        "ноября",
        "декабря",
    ],
    "ru in": [
        "январе",
        "феврале",
        "марте",
        "апреле",
        "мае",
        "июне",
        "июле",
        "августе",
        "сентябре",
        "октябре",
        "ноябре",
        "декабре",
    ],
}
VALUES = {
    ("home", "en"): ["Lyon", "Berlin", "Oslo", "Rome", "Bern", "Porto"],
    ("home", "ru"): ["Казани", "Берлине", "Осло", "Риме", "Берне", "Твери"],
    ("home", "zh"): ["北京", "上海", "成都", "杭州", "西安", "南京"],
    ("employer", "en"): ["Siemens", "Bosch", "Acme", "Initech", "Globex", "Hooli"],
    ("employer", "ru"): ["Сбере", "Озоне", "Авито", "Яндексе", "Лукойле", "Газпроме"],
    ("employer", "zh"): ["腾讯", "华为", "联想", "京东", "网易", "百度"],
    ("name", "en"): ["Ada", "Eve", "Ida", "Mia", "Zoe", "Ann"],
    ("name", "ru"): ["Анна", "Вера", "Ольга", "Нина", "Майя", "Зоя"],
    ("name", "zh"): ["李明", "王芳", "张伟", "刘洋", "陈静", "赵磊"],
}
SAYS = {  # of what is true when it is said
    ("home", "en"): ("I live in {}.", "I now live in {}.", "By the way, I live in {} with two cats."),
    ("home", "ru"): ("Я живу в {}.", "Я теперь живу в {}."),
    ("home", "zh"): ("我住在{}。", "我现在住在{}。"),
    ("employer", "en"): ("I work at {}.", "I'm working for {}."),
    ("employer", "ru"): ("Я работаю в {}.", "Я теперь работаю в {}."),
    ("employer", "zh"): ("我在{}工作。", "我现在在{}工作。"),
    ("name", "en"): ("My name is {}.", "Call me {}."),
    ("name", "ru"): ("Меня зовут {}.",),
    ("name", "zh"): ("我叫{}。",),
    ("birthday", "en"): ("My birthday is {}.", "I was born on {}."),
    ("birthday", "ru"): ("Мой день рождения {}.",),
    ("birthday", "zh"): ("我的生日是{}。",),
    ("deadline:gate", "en"): ("The gate deadline is {}.", "The gate deadline has been moved to {}."),
    ("deadline:gate", "zh"): ("gate截止日期改到{}。",),
}
TELLS = {  # what has begun, with a time
    ("home", "en"): ("I moved to {v} {w}.", "By the way, I moved to {v} {w}.", "I've moved to {v}, {w}."),
    ("home", "ru"): ("Я переехала в {v} {w}.",),
    ("home", "zh"): ("我{w}搬到了{v}。", "我{w}搬到{v}了。"),
    ("employer", "en"): ("I started working for {v} {w}.", "I got a job at {v} {w}."),
    ("employer", "ru"): ("Я начала работать в {v} {w}.",),
    ("employer", "zh"): ("我{w}开始在{v}工作。",),
}
PLANS = {  # what begins on a day in the future
    ("home", "en"): ("From {w} I live in {v}.", "I'm moving to {v} on {w}.", "On {w}, I will move to {v}."),
    ("home", "ru"): ("С {w} я живу в {v}.", "Я перееду в {v} {w}."),
    ("home", "zh"): ("从{w}起我住在{v}。", "我{w}要搬到{v}。"),
    ("employer", "en"): ("From {w} I work at {v}.", "I will start working for {v} on {w}."),
    ("employer", "ru"): ("С {w} я работаю в {v}.",),
    ("employer", "zh"): ("从{w}起我在{v}工作。",),
}
SORRY = {"en": "Sorry, {}", "ru": "Извините, {}", "zh": "抱歉，{}"}


@frozen
class Change:
    """A value that began on a day; ``low`` and ``high`` bound it for those who heard what was told of it."""

    value: str
    day: datetime


@frozen
class Saying:
    """What is said at a moment of a change of the story: when it began, or only that it is so."""

    text: str
    said: datetime
    change: int
    low: datetime | None
    high: datetime


def in_words(day, language):
    """Return a day as a date."""
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {MONTHS[language][day.month - 1]} {day.year}"


def month_after(day):
    return (day.replace(day=1) + timedelta(32)).replace(day=1)


def whens(day, said, language):
    """Return the ways to tell a past day, each with the first moment that it may mean, and the end of the last."""
    today = said.replace(hour=0, minute=0)
    first, week = day.replace(day=1), day - timedelta(day.weekday())
    year = day.replace(month=1, day=1)
    after_year = year.replace(year=year.year + 1)
    ago = (today - day).days
    months = (today.year - day.year) * 12 + today.month - day.month
    weeks = (today - timedelta(today.weekday()) - week).days // 7
    says = {
        "en": ("yesterday", "{} days ago", "last week", "{} weeks ago", "last month", "in {} {}", "in {}", "last year"),
        "ru": ("вчера", "{} дней назад", "на прошлой неделе", "{} недель назад", "в прошлом месяце", "в {} {}", "в {}"),
        "zh": ("昨天", "{}天前", "上周", "{}周前", "上个月", "{1}年{0}月", "{}年", "去年"),
    }[language]
    month = day.month if language == "zh" else MONTHS["ru in" if language == "ru" else "en"][day.month - 1]
    on = {"en": "on {}", "ru": "{}", "zh": "{}"}[language].format(in_words(day, language))
    found = [(on, day, day + DAY)]
    if ago == 1:
        found.append((says[0], day, day + DAY))
    if 2 < ago < 99:
        found.append((says[1].format(ago), day, day + DAY))
    if weeks == 1:
        found.append((says[2], week, week + 7 * DAY))
    if 1 < weeks < 9:
        found.append((says[3].format(weeks), week, week + 7 * DAY))
    if months == 1:
        found.append((says[4], first, month_after(day)))
    if today > month_after(day) and language != "zh":
        found.append((says[5].format(month, day.year), first, month_after(day)))
    if today.year > day.year:
        found.append((says[6].format(day.year), year, after_year))
    if today.year == day.year + 1 and len(says) > 7:
        found.append((says[7], year, after_year))
    return found


class Story:
    """The changes of one slot of a life, and what is said of them, in the order of saying."""

    def __init__(self, dice):
        self.dice = dice
        self.slot, self.language = dice.choice(sorted(SAYS))
        self.returns = dice.random() < 0.5  # then nothing is told late: what was said again would hide it
        count = dice.randint(1, 5)
        days = sorted(dice.sample(range(20, 700), count))
        self.changes = [
            Change(value, START + timedelta(day)) for day, value in zip(days, self.values(count), strict=True)
        ]
        self.sayings = []
        for number in range(count):
            self.tell(number)
        self.sayings.sort(key=lambda saying: saying.said)

    def values(self, count):
        """Return values of which no two that follow each other are equal; a person may come back."""
        if (self.slot, self.language) not in VALUES:
            days = self.dice.sample(range(365), count)
            return [in_words(datetime(1990, 1, 1, tzinfo=UTC) + timedelta(day), self.language) for day in days]
        chosen = []
        while len(chosen) < count:
            value = self.dice.choice(VALUES[self.slot, self.language])
            if value not in (chosen[-1:] if self.returns else chosen):
                chosen.append(value)
        return chosen

    def end_of(self, number):
        return self.changes[number + 1].day if number + 1 < len(self.changes) else START + timedelta(800)

    def moment_in(self, begin, end):
        """Return a moment on a day from ``begin`` to the one before ``end``."""
        days = max((end - begin).days, 1)
        return begin + timedelta(self.dice.randrange(days), minutes=self.dice.randint(1, 1438))

    def tell(self, number):
        """Tell a change: before, at once, late, or only that it is so; or leave it out."""
        change, key = self.changes[number], (self.slot, self.language)
        ways = ["so", "so", "wrong"] + (["told", "told", "told", "late", "planned", "left out"] if key in TELLS else [])
        way = self.dice.choice(ways)
        if way in {"so", "wrong"}:
            self.say_so(number, sorry=way == "wrong")
        if way == "planned":
            low = self.changes[number - 1].day if number else START
            if (change.day - low).days > 2:
                said = self.moment_in(low, change.day - DAY)
                text = self.dice.choice(PLANS[key]).format(v=change.value, w=in_words(change.day, self.language))
                self.sayings.append(Saying(text, said, number, change.day, change.day + DAY))
        if way == "told":
            self.say_when(number, self.moment_in(change.day + DAY, self.end_of(number)))
        if way == "late" and not self.returns and number + 1 < len(self.changes):
            self.say_so(number + 1)
            if self.sayings and self.sayings[-1].change == number + 1:
                self.say_when(number, self.sayings[-1].said + timedelta(self.dice.randint(1, 200)))
        if way not in {"wrong", "left out"} and self.dice.random() < 0.4:
            self.say_so(number)

    def say_so(self, number, *, sorry=False):
        """Say what is so; if it is a correction, something wrong was said a minute before."""
        change, key = self.changes[number], (self.slot, self.language)
        if (self.end_of(number) - change.day).days < 3:
            return
        said = self.moment_in(change.day + DAY, self.end_of(number))
        text = self.dice.choice(SAYS[key]).format(change.value)
        if sorry:
            wrong = in_words(START + timedelta(self.dice.randrange(300)), self.language)
            told = {other.value for other in self.changes}
            wrong = next((value for value in VALUES.get(key, [wrong]) if value not in told), "")
            slip = self.dice.choice(SAYS[key]).format(wrong)
            if wrong:
                self.sayings.append(Saying(slip, said - timedelta(minutes=1), -1, None, said))
                text = SORRY[self.language].format(text if text[0] in "IЯ" else text[0].lower() + text[1:])
        self.sayings.append(Saying(text, said, number, None, said))

    def say_when(self, number, said):
        change = self.changes[number]
        ways = whens(change.day, said, self.language)
        if said >= self.end_of(number):  # of what is past it is said when it was: before what followed
            ways = [way for way in ways if way[2] <= self.end_of(number)]
        words, low, high = self.dice.choice(ways)
        text = self.dice.choice(TELLS[self.slot, self.language]).format(v=change.value, w=words)
        self.sayings.append(Saying(text, said, number, low, min(high, said)))

    def bounds(self):
        """Return the told changes, each with the last moment without it and the first moment with it."""
        heard = sorted({saying.change for saying in self.sayings if saying.change >= 0})
        found, before = [], START - timedelta(9999)
        for number in heard:
            own = [saying for saying in self.sayings if saying.change == number]
            low = max([before, *(saying.low for saying in own if saying.low)])
            high = min(saying.high for saying in own)
            found.append((self.changes[number].value, low, max(high, low)))
            so = [saying.said for saying in own if saying.low is None]
            before = max([low, *so])
        return found


def lines_of(sayings, batch=1):
    """Return the lines of the journal after messages were read, ``batch`` at a time."""
    lines = []
    for first in range(0, len(sayings), batch):
        window = [
            SourceMessage("t_1", f"m{number}", "user", "Ada", saying.text, saying.said)
            for number, saying in enumerate(sayings[first : first + batch], start=first)
        ]
        now = max(message.said_at for message in window) + timedelta(minutes=5)
        resolver = Resolver(fold(lines) if lines else State(), FactsOptions(max_ends=99), now, "rules-1", f"b-{first}")
        for candidate in rule_extractor.extract(window):
            fact = make_fact(candidate, window)
            if fact is not None and fact.slot:
                resolver.add(fact)
        lines += resolver.finish()
    return lines


def shown(state, moment):
    return [fact.value for fact in state.visible(moment).values()]


def check(story, lines):
    """Compare every moment with the oracle."""
    state, bounds = fold(lines), story.bounds()
    told = [f"{saying.said:%Y-%m-%d %H:%M} {saying.text}" for saying in story.sayings]
    slips = [saying for saying in story.sayings if saying.change < 0]
    moments = {START + timedelta(days, hours=23, minutes=59) for days in range(0, 900, 3)}
    moments |= {moment for _, low, high in bounds for moment in (low, high, high + DAY)}
    for moment in sorted(moment for moment in moments if moment >= START):
        if any(abs(moment - slip.said) <= timedelta(minutes=2) for slip in slips):
            continue
        here = shown(state, moment)
        begun = [value for value, low, high in bounds if high <= moment]
        perhaps = [value for value, low, high in bounds if low <= moment < high]
        possible = {*begun[-1:], *perhaps}
        detail = (f"{moment:%Y-%m-%d %H:%M}", here, possible, told, bounds)
        assert len(here) <= 1, detail
        if not perhaps:
            assert here == begun[-1:], detail
        assert set(here) <= possible or not begun, detail


def test_each_moment_of_a_life_is_as_it_was_told(cases):
    for number in range(cases.number(300, STORIES)):
        story = Story(Random(f"life {number}"))
        check(story, lines_of(story.sayings, Random(number).choice([1, 2, 50])))


def day(text):
    return datetime.fromisoformat(f"{text}T09:00").replace(tzinfo=UTC)


def told(*pairs):
    return fold(lines_of([Saying(text, day(said), 0, None, day(said)) for said, text in pairs]))


def slots_of(state, moment):
    return [(fact.slot, fact.value) for fact in state.visible(day(moment)).values()]


@pytest.mark.parametrize(
    ("before", "news", "value"),
    [
        ("I live in Lyon.", "I moved to Berlin last month.", "Berlin"),
        ("I live in Lyon.", "I moved to Berlin in May.", "Berlin"),
        ("I live in Lyon.", "I moved to Berlin in April.", "Lyon"),
        ("I work at Siemens.", "I started working for Bosch this year.", "Bosch"),
        ("我住在北京。", "我上个月搬到上海了。", "上海"),
        ("Я живу в Казани.", "Я переехал в Берлин в прошлом месяце.", "Берлин"),
    ],
)
def test_what_is_said_later_is_true_unless_all_of_its_time_is_before(before, news, value):
    state = told(("2026-05-20", before), ("2026-06-05", news))
    assert [found for _, found in slots_of(state, "2026-06-06")] == [value]
    assert slots_of(state, "2026-05-20")[0][1] in before


def test_no_value_ends_before_it_begins_and_last_week_may_be_the_days_before_it_is_said():
    state = told(("2026-02-23", "I live in Paris since 2020."), ("2026-03-01", "I moved to Lyon last week."))
    assert slots_of(state, "2026-03-02") == [("home", "Lyon")]
    assert slots_of(state, "2026-02-10") == [("home", "Paris")]
    state = told(("2026-02-28", "I live in Paris since 2020."), ("2026-03-01", "I moved to Lyon in January."))
    facts = list(state.facts.values())
    assert len(facts) == 2
    assert all(fact.valid_to is None or fact.valid_from <= fact.valid_to for fact in facts)


def test_what_begins_in_the_future_ends_nothing_before():
    state = told(("2026-11-20", "I live in Rome."), ("2026-11-21", "From 15 January 2027 I live in Oslo."))
    assert slots_of(state, "2027-01-14") == [("home", "Rome")]
    assert slots_of(state, "2027-01-15") == [("home", "Oslo")]
    assert [validity(fact) for fact in state.facts.values()] == [
        "2026-11-20 or earlier to 2027-01-15",
        "since 2027-01-15",
    ]


def test_the_date_in_a_value_is_not_the_date_of_the_value():
    sorry = "Sorry, I was born on 23 December 1990."
    state = told(("2026-11-20", "My birthday is 24 December."), ("2026-11-21", sorry))
    assert slots_of(state, "2026-11-21") == [("birthday", "23 December 1990")]
    assert told(("2026-11-20", "I live in Lyon, and I visited Rome last month.")).facts == {}


def test_a_period_is_told_as_exactly_as_it_is_known():
    state = told(("2026-05-20", "I live in Lyon."), ("2026-06-05", "I moved to Berlin last month."))
    assert [validity(fact) for fact in state.facts.values()] == [
        "2026-05-20 or earlier to about May 2026",
        "since about May 2026",
    ]
    state = told(("2026-05-20", "I moved to Lyon last week."), ("2027-01-05", "I moved to Berlin last year."))
    assert [validity(fact) for fact in state.facts.values()] == ["about 2026-05-11 to about 2026", "since about 2026"]


def test_the_lines_of_an_earlier_version_keep_their_meaning():
    lines = lines_of([Saying("I live in Lyon.", day("2026-05-20"), 0, None, day("2026-05-20"))])
    old = [{**line, **({"precision": "moment"} if line["op"] == "assert" else {})} for line in lines]
    assert fold(old) == fold(lines)


def test_the_order_in_which_statements_arrive_does_not_matter(cases):
    """Of statements that no statement repeats."""
    wrong = []
    for number in range(cases.number(30, 1_000)):
        story, dice = Story(Random(f"order {number}")), Random(number)
        heard = [saying for saying in story.sayings if saying.change >= 0]
        told = list({saying.change: saying for saying in heard}.values())
        moments = [START + timedelta(days) for days in range(0, 900, 7)]
        in_order, in_disorder = fold(lines_of(told)), fold(lines_of(dice.sample(told, len(told))))
        same = all(shown(in_order, moment) == shown(in_disorder, moment) for moment in moments)
        wrong += [] if same or story.returns else [(number, told)]
    assert wrong == []
