"""Marks on statements that another statement of the same context has overtaken.

Nothing is ended by this: it is a hint for the reader of one context. A statement is marked if the question asks for a
quantity (how many, when, how much), a later statement that speaks of a change names another one of the same kind, and
both share three words with the question. What the question does not ask for is never marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from klaw_core import ContextItem
from klaw_facts.extracting.sentences import sentences

_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_COUNT, _DATE, _TIME, _MONEY, _SHARE = "count", "date", "time", "money", "share"
# Each kind is taken out of a sentence before the next is looked for; what is left are counts.
_KINDS: Mapping[str, re.Pattern[str]] = {
    _DATE: re.compile(
        rf"\b(?:{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}\.? {_MONTH}|\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}})\b"
        r"|\b\d{1,2} (?:январ|феврал|март|апрел|ма[йя]|июн|июл|август|сентябр|октябр|ноябр|декабр)\w*|\d{1,2}月\d{1,2}[日号]",
        re.IGNORECASE,
    ),
    _TIME: re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b\d{1,2}:\d\d\b|\d{1,2}[点點]", re.IGNORECASE),
    _MONEY: re.compile(r"[$€£¥]\d(?:[\d,.]*\d)?|\d(?:[\d,.]*\d)? ?(?:евро|руб|元|块)"),
    _SHARE: re.compile(r"\b\d+(?:\.\d+)? ?%"),
}
_COUNTED = re.compile(
    r"\b(\d[\d,.]*)(?:\s+(?:total|new|more|different|project|of|the))?[ -]?([^\W\d_]{2,})", re.IGNORECASE
)
_ASKED: Mapping[str, re.Pattern[str]] = {
    _COUNT: re.compile(r"how many|number of|сколько|多少|几", re.IGNORECASE),
    _DATE: re.compile(r"\bwhen\b|\bdates?\b|deadline|\bdays?\b|schedul|когда|срок|什么时候|何时|日期", re.IGNORECASE),
    _TIME: re.compile(r"\bwhen\b|\btime\b|когда|во сколько|几点|时间", re.IGNORECASE),
    _MONEY: re.compile(
        r"how much|budget|\bcosts?\b|price|spen[dt]|\bpay\b|salary|\bfee\b|amount|allocat|сколько|бюджет|цен[аы]|多少|预算|价格",
        re.IGNORECASE,
    ),
    _SHARE: re.compile(r"percent|\brate\b|accuracy|coverage|how much|процент|比例|率", re.IGNORECASE),
}
_DIGIT = re.compile(r"\d")  # every quantity has one
_WORD = re.compile(r"[^\W\d_]{3,}|[\u4e00-\u9fff]")
_CHANGE = re.compile(
    r"\b(?:now|instead|updated?|changed?|moved|extended|increased|decreased|improved|reduced|dropped|rescheduled|postponed|pushed|raised"
    r"|upgraded|revised|recently|latest|so far|just|currently|already|reached)\b|теперь|сейчас|перенес|измени|увелич|现在|改|更新|推迟",
    re.IGNORECASE,
)
_STOP = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this have has had was were are from but not you your our can could would should will help need want what how "
        "when which about into some any been just like also make sure using use does much many there did",
    )
)
_SHARED_WORDS = 3
_MOST_ITEMS = 20  # as many as a usual budget takes; more would cost time in each context


@frozen
class _Statement:
    item: int
    words: frozenset[str]
    values: Mapping[str, frozenset[str]]
    is_change: bool


def mark_stale(items: Sequence[ContextItem], question: str) -> list[ContextItem]:
    """Return the items, with a note on each that a later one of them seems to have overtaken."""
    kinds = frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))
    asked = content_words(question)
    if not kinds or len(asked) < _SHARED_WORDS:
        return list(items)
    dated = [index for index, item in enumerate(items) if item.newest_first and item.created_at is not None]
    statements = [
        statement
        for index in dated[:_MOST_ITEMS]
        if _DIGIT.search(items[index].text)
        for sentence in sentences(items[index].text)
        if _DIGIT.search(sentence.text) and (statement := _statement(index, sentence.text, kinds, asked))
    ]
    overtaken: dict[int, int] = {}
    for new in statements:
        for old in statements if new.is_change else ():
            if _is_later(items[new.item], items[old.item]) and _overtakes(new, old):
                overtaken.setdefault(old.item, new.item)
    return [_marked(item, items[overtaken[index]]) if index in overtaken else item for index, item in enumerate(items)]


def _statement(item: int, text: str, kinds: frozenset[str], asked: frozenset[str]) -> _Statement | None:
    """Return what a sentence says about the question, None if it names nothing that is asked for."""
    words = content_words(text) & asked
    if len(words) < _SHARED_WORDS:
        return None
    values = {kind: found for kind, found in _quantities(text).items() if _kind(kind) in kinds}
    return _Statement(item, words, values, _CHANGE.search(text) is not None) if values else None


def _overtakes(new: _Statement, old: _Statement) -> bool:
    """Whether two statements are about the same and name different quantities of a kind."""
    if len(new.words & old.words) < _SHARED_WORDS:
        return False
    return any(kind in old.values and found.isdisjoint(old.values[kind]) for kind, found in new.values.items())


def _quantities(text: str) -> dict[str, frozenset[str]]:
    """Return the quantities of a sentence by kind; a count's kind has what is counted, as in ``count card``."""
    found: dict[str, set[str]] = {}
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(text):
            found.setdefault(kind, set()).add("".join(match[0].casefold().split()))
        text = pattern.sub(" ", text)
    for match in _COUNTED.finditer(text):
        found.setdefault(f"{_COUNT} {_stem(match[2])}", set()).add(match[1].rstrip(".,"))
    return {kind: frozenset(values) for kind, values in found.items()}


def _kind(name: str) -> str:
    return name.partition(" ")[0]


def content_words(text: str) -> frozenset[str]:
    """Return what a text is about: its words without endings of the plural, and without those that every text has."""
    return frozenset(map(_stem, _WORD.findall(text))) - _STOP


def _stem(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > _SHARED_WORDS and folded.endswith("s") else folded


def _is_later(new: ContextItem, old: ContextItem) -> bool:
    return new.created_at is not None and old.created_at is not None and new.created_at > old.created_at


def _marked(item: ContextItem, by: ContextItem) -> ContextItem:
    assert by.created_at is not None
    return evolve(item, note=f" (perhaps outdated: see {by.created_at.date().isoformat()})")
