"""Marks on statements that a later statement of the same context supersedes.

Nothing is ended by this: it is a hint for the reader of one context. A statement is marked if the question asks for a
quantity (how many, when, how much, how long) that holds now, and a later statement names another one of the same kind
and is about the same: both share with the question most of its words, or three and the later one speaks of a change, or
what is measured (a budget, a deadline, what is counted) and one more. What the question does not ask for is never
marked, and neither is anything if it asks what was once, or compares.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import dropwhile, takewhile

from attrs import evolve, frozen

from klaw_core.cli.kit import shown_day
from klaw_facts.extracting.sentences import sentences
from klaw_tools import ContextItem
from klaw_words.lazy_patterns import lazy_pattern

_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_COUNT, _DATE, _TIME, _MONEY, _SHARE, _SPAN = "count", "date", "time", "money", "share", "span"
# Each kind is taken out of a sentence, in lower case, before the next is looked for; what is left are counts.
_KINDS: Mapping[str, re.Pattern[str]] = {
    _DATE: lazy_pattern(
        rf"\b(?:{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}\.? {_MONTH}|\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}})\b"
        r"|\b\d{1,2} (?:январ|феврал|март|апрел|ма[йя]|июн|июл|август|сентябр|октябр|ноябр|декабр)\w*|\d{1,2}月\d{1,2}[日号]",
    ),
    _TIME: lazy_pattern(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b\d{1,2}:\d\d\b|\d{1,2}[点點]"),
    _MONEY: lazy_pattern(r"[$€£¥]\d(?:[\d,.]*\d)?|\d(?:[\d,.]*\d)? ?(?:евро|руб|元|块)"),
    _SHARE: lazy_pattern(r"\b\d+(?:\.\d+)? ?%"),
    _SPAN: lazy_pattern(
        r"\b\d+(?: ?[-–] ?\d+| to \d+)?[ -](?:minute|hour|day|week|month|year)s?\b"
        r"|\b\d+(?: ?[-–] ?\d+)? (?:минут|час|дн|день|недел|месяц|год|лет)\w*|\d+(?:个)?(?:分钟|小时|天|星期|周|月|年)"
    ),
}
_COUNTED = lazy_pattern(r"(?<![\d.,])(\d[\d,.]*)((?:[ -]?[^\W\d_]+){1,4})")
# A number that belongs to what the rest of the sentence counts: "the commits have now reached 165".
_REACHED = lazy_pattern(
    r"\b(?:reached|totals?|(?:up|down|grown|risen|increased|decreased|now) (?:to|at)|до|достигл\w+)\s+(\d[\d,.]*)"
)
_WHEN = r"(?:^\W*(?:(?:and|so|but)\W+)?when\b|\bwhen(?:'s| (?:is|are|was|were|do|does|did|will|should|can|could|am)\b))"
_ASKED: Mapping[str, re.Pattern[str]] = {
    _COUNT: lazy_pattern(r"how many|number of|сколько|多少|几", re.IGNORECASE),
    _DATE: lazy_pattern(rf"{_WHEN}|\bdates?\b|deadline|schedul|когда|срок|什么时候|何时|日期|哪天", re.IGNORECASE),
    _TIME: lazy_pattern(rf"{_WHEN}|\btime\b|когда|во сколько|几点|时间", re.IGNORECASE),
    _SPAN: lazy_pattern(
        r"how long (?:do|does|is|are|will|can|should)|duration|сколько времени|как долго|多久|多长时间",
        re.IGNORECASE,
    ),
    _MONEY: lazy_pattern(
        r"how much|budget|\bcosts?\b|price|spen[dt]|\bpay\b|salary|\bfee\b|amount|allocat|сколько|бюджет|цен[аы]|多少|预算|价格",
        re.IGNORECASE,
    ),
    _SHARE: lazy_pattern(r"percent|\brate\b|accuracy|coverage|how much|процент|比例|率", re.IGNORECASE),
}
# Questions about what was once, or about two things at a time: their old values are not outdated.
_HISTORICAL = lazy_pattern(
    r"\bbetween\b.+\band\b|\b(?:passed|elapsed|compare[sd]?|difference|changed?|original(?:ly)?|initial(?:ly)?|used to|did i (?:say|mention)"
    r"|before|previous(?:ly)?|ever|history|considering)\b|\b(?:между|раньше|сначала|прошло|изменил\w*)\b|之前|以前|原来|最初|相差",
    re.IGNORECASE,
)
_MEASURE = lazy_pattern(
    r"accuracy|coverage|budget|price|cost|salary|income|rent|fee|deadline|score|rate|meeting|session|appointment|flight|webinar"
    r"|dinner|бюджет|цен|стоимост|зарплат|аренд|срок|точност|встреч|рейс|预算|价格|工资|房租|截止|会议|航班",
    re.IGNORECASE,
)
_DIGIT = lazy_pattern(r"\d")  # every quantity has one
_FOLLOWING = lazy_pattern(r"[^\W\d_]+")
_WORD = lazy_pattern(r"(?:(?![\u4e00-\u9fff])[^\W\d_]){3,}|[\u4e00-\u9fff]")
_CHANGE = lazy_pattern(
    r"\bnew (?:deadline|budget|price|date|time|goal|target|limit|rent|fee|salary|rate|score|total)\b|\bnow\b(?! that)|\b(?:instead|updated?|changed?|moved|extended|increased|decreased|improved|reduced|dropped|rescheduled|postponed|pushed|raised"
    r"|upgraded|revised|recently|latest|so far|just|currently|already|reached|shortened|reschedule)\b"
    r"|теперь|сейчас|перенес|измени|увелич|вырос|сократ|现在|改|更新|推迟|提前|增加|减少|涨",
    re.IGNORECASE,
)
# A change of a date whose new value is elsewhere: "remind me what date it has been rescheduled to".
_MOVED = lazy_pattern(
    r"\b(?:rescheduled|postponed|brought forward|put off|cancel+ed)\b|перенес\w*|отложи\w*|推迟|改期|取消",
    re.IGNORECASE,
)
_STOP = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this have has had was were are from but not you your our can could would should will help need want what how "
        "when which about into some any been just like also make sure using use does much many there did",
    )
) | frozenset("的是了我你他她它们在有和就不也都这那吗呢吧啊个么什怎哪多少几很到说")
_RU_ENDING = lazy_pattern(r"(?<=\w{3})[аеёиоуыэюяйьмхв]{1,3}$")
_PLURALS = ("ches", "shes", "sses", "xes")
_SHARED_WORDS = 3
_FEW_SHARED = 2
_MOST = 0.55
# Questions of one person meet the same chunks again and again.
_SENTENCES_KEPT = 4096
_MAX_ITEMS = 20  # as many as a usual budget takes; more would cost time in each context


@frozen
class _Statement:
    item: int
    moment: datetime
    words: frozenset[str]
    values: Mapping[str, frozenset[str]]
    is_change: bool
    is_moved: bool = False

    def measures(self) -> frozenset[str]:
        """Return what is measured: what its counts count, and words such as a budget."""
        counted = {kind.partition(" ")[2] for kind in self.values} & self.words
        return frozenset(counted | {word for word in self.words if _MEASURE.search(word)})


def mark_stale(items: Sequence[ContextItem], question: str) -> list[ContextItem]:
    """Return the items, with a note on each that a later one of them seems to have overtaken."""
    kinds = frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))
    asked = content_words(question)
    if not kinds or len(asked) < _FEW_SHARED or _HISTORICAL.search(question):
        return list(items)
    named = _quantities(question, frozenset(_KINDS), asked)
    dated = [(index, item) for index, item in enumerate(items) if item.newest_first and item.created_at is not None]
    statements = [
        statement
        for index, item in dated[:_MAX_ITEMS]
        if item.created_at is not None and _may_state(item.text, asked)
        for sentence in _sentences(item.text)
        if _may_state(sentence, asked)
        and (statement := _statement((index, item.created_at), sentence, kinds, asked, named)) is not None
    ]
    overtaken: dict[int, int] = {}
    for new in sorted(statements, key=lambda statement: statement.moment, reverse=True):
        for old in statements:
            if old.moment < new.moment and old.item not in overtaken and _overtakes(new, old, asked):
                overtaken[old.item] = new.item
    return [_marked(item, items[overtaken[index]]) if index in overtaken else item for index, item in enumerate(items)]


@lru_cache(_SENTENCES_KEPT // 4)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence.text for sentence in sentences(text))


def _may_state(text: str, asked: frozenset[str]) -> bool:
    """Return False if a text has no quantity, or too few words of the question: most have, and this takes little."""
    if not _DIGIT.search(text) and not _MOVED.search(text):
        return False
    folded = text.casefold()
    shared = 0
    for word in asked:
        if word in folded:
            shared += 1
            if shared == _FEW_SHARED:
                return True
    return False


def _statement(
    place: tuple[int, datetime],
    text: str,
    kinds: frozenset[str],
    asked: frozenset[str],
    named: Mapping[str, frozenset[str]],
) -> _Statement | None:
    """Return what a sentence says about the question, None if it names nothing that is asked for.

    ``named`` are the quantities of the question itself, which say what is meant and are no answer.
    """
    words = content_words(text) & asked
    if len(words) < _FEW_SHARED:
        return None
    found = {
        kind: values - named.get(kind, frozenset())
        for kind, values in _quantities(text, kinds, asked).items()
        if _kind(kind) in kinds
    }
    values = {kind: values for kind, values in found.items() if values}
    is_moved = not values and bool(kinds & {_DATE, _TIME}) and _MOVED.search(text) is not None
    change = _speaks_of_change(text)
    return _Statement(*place, words, values, change, is_moved) if values or is_moved else None


def _overtakes(new: _Statement, old: _Statement, asked: frozenset[str]) -> bool:
    """Whether two statements are about the same, and name different quantities of a kind."""
    common = new.words & old.words
    if new.is_moved:
        return len(common) >= _SHARED_WORDS and bool(old.values.keys() & {_DATE, _TIME})
    differing = {
        kind for kind, found in new.values.items() if kind in old.values and found.isdisjoint(old.values[kind])
    }
    differing |= {kind for kind in old.values if _reaches(new, old, kind, common)}
    if not differing:
        return False
    if not new.is_change:
        return not old.is_change and len(common) >= max(_SHARED_WORDS, _MOST * len(asked))
    if len(common) >= _SHARED_WORDS:
        return True
    if old.is_change or len(common) < _FEW_SHARED:
        return False
    return _SPAN in differing or bool(common & new.measures() & old.measures())


def _reaches(new: _Statement, old: _Statement, kind: str, common: frozenset[str]) -> bool:
    """Whether a number without a noun in the later statement is another one of what the earlier one counts."""
    bare = new.values.get(_COUNT, frozenset())
    return new.is_change and bool(bare) and kind.partition(" ")[2] in common and bare.isdisjoint(old.values[kind])


@lru_cache(_SENTENCES_KEPT)
def _speaks_of_change(text: str) -> bool:
    return _CHANGE.search(text) is not None


@lru_cache(_SENTENCES_KEPT)
def _quantities(text: str, kinds: frozenset[str], asked: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return the quantities of a sentence by kind; a count's kind has what is counted, as in ``count card``.

    Those of ``kinds`` are among them. What is counted is the last word of the question's that follows the number
    ("12 conditional probability problems"), or else the next word; a number that something reached has no such word.
    """
    found: dict[str, set[str]] = {}
    wanted = set(kinds)
    text = text.casefold()
    for kind, pattern in _KINDS.items():

        def take(match: re.Match[str], kind: str = kind) -> str:
            found.setdefault(kind, set()).add("".join(match[0].split()))
            return " "

        text = pattern.sub(take, text)
        wanted.discard(kind)
        if not wanted:
            break
    for match in _COUNTED.finditer(text) if wanted else ():
        following = [_stem(word) for word in _FOLLOWING.findall(match[2])]
        run = takewhile(asked.__contains__, dropwhile(lambda word: word not in asked, following))
        noun = [following[0], *run][-1]
        found.setdefault(f"{_COUNT} {noun}", set()).add(match[1].rstrip(".,"))
    for match in _REACHED.finditer(text) if wanted else ():
        found.setdefault(_COUNT, set()).add(match[1].rstrip(".,"))
    return {kind: frozenset(values) for kind, values in found.items()}


def _kind(name: str) -> str:
    return name.partition(" ")[0]


@lru_cache(_SENTENCES_KEPT)
def content_words(text: str) -> frozenset[str]:
    """Return what a text is about: its words without endings of the plural, and without those that every text has."""
    return frozenset(map(_stem, _WORD.findall(text))) - _STOP


def _stem(word: str) -> str:
    folded = word.casefold()
    if "а" <= folded[-1] <= "я":
        return _RU_ENDING.sub("", folded)
    if folded.endswith(_PLURALS):
        return folded[:-2]
    return folded[:-1] if len(folded) > _SHARED_WORDS and folded.endswith("s") else folded


def _marked(item: ContextItem, by: ContextItem) -> ContextItem:
    assert by.created_at is not None
    return evolve(item, note=f" (perhaps outdated: see {shown_day(by.created_at.isoformat())})")
