"""Marks on statements that a later statement of the same context supersedes.

Nothing is ended by this: it is a hint for the reader of one context. A statement is marked if the question asks for a
quantity (how many, when, how much), a later statement that speaks of a change names another one of the same kind, and
both share three words with the question. What the question does not ask for is never marked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from attrs import evolve, frozen

from klaw_facts.extracting.sentences import sentences
from klaw_tools import ContextItem

_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_COUNT, _DATE, _TIME, _MONEY, _SHARE = "count", "date", "time", "money", "share"
# Each kind is taken out of a sentence, in lower case, before the next is looked for; what is left are counts.
_KINDS: Mapping[str, re.Pattern[str]] = {
    _DATE: re.compile(
        rf"\b(?:{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?|\d{{1,2}}\.? {_MONTH}|\d{{4}}-\d\d-\d\d|\d{{1,2}}/\d{{1,2}})\b"
        r"|\b\d{1,2} (?:январ|феврал|март|апрел|ма[йя]|июн|июл|август|сентябр|октябр|ноябр|декабр)\w*|\d{1,2}月\d{1,2}[日号]",
    ),
    _TIME: re.compile(r"\b\d{1,2}(?::\d\d)? ?(?:am|pm)\b|\b\d{1,2}:\d\d\b|\d{1,2}[点點]"),
    _MONEY: re.compile(r"[$€£¥]\d(?:[\d,.]*\d)?|\d(?:[\d,.]*\d)? ?(?:евро|руб|元|块)"),
    _SHARE: re.compile(r"\b\d+(?:\.\d+)? ?%"),
}
_COUNTED = re.compile(r"\b(\d[\d,.]*)(?:\s+(?:total|new|more|different|project|of|the))?[ -]?([^\W\d_]{2,})")
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


def mark_stale(items: Sequence[ContextItem], question: str) -> list[ContextItem]:
    """Return the items, with a note on each that a later one of them seems to have overtaken."""
    kinds = frozenset(kind for kind, pattern in _ASKED.items() if pattern.search(question))
    asked = content_words(question)
    if not kinds or len(asked) < _SHARED_WORDS:
        return list(items)
    dated = [(index, item) for index, item in enumerate(items) if item.newest_first and item.created_at is not None]
    statements = [
        statement
        for index, item in dated[:_MAX_ITEMS]
        if item.created_at is not None and _may_state(item.text, asked)
        for sentence in _sentences(item.text)
        if _may_state(sentence, asked)
        and (statement := _statement(index, item.created_at, sentence, kinds, asked)) is not None
    ]
    overtaken: dict[int, int] = {}
    for new in (statement for statement in statements if statement.is_change):
        for old in statements:
            if old.moment < new.moment and old.item not in overtaken and _overtakes(new, old):
                overtaken[old.item] = new.item
    return [_marked(item, items[overtaken[index]]) if index in overtaken else item for index, item in enumerate(items)]


@lru_cache(_SENTENCES_KEPT // 4)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(sentence.text for sentence in sentences(text))


def _may_state(text: str, asked: frozenset[str]) -> bool:
    """Return False if a text has no quantity, or too few words of the question: most have, and this takes little."""
    if not _DIGIT.search(text):
        return False
    folded = text.casefold()
    shared = 0
    for word in asked:
        if word in folded:
            shared += 1
            if shared == _SHARED_WORDS:
                return True
    return False


def _statement(
    item: int, moment: datetime, text: str, kinds: frozenset[str], asked: frozenset[str]
) -> _Statement | None:
    """Return what a sentence says about the question, None if it names nothing that is asked for."""
    words = content_words(text) & asked
    if len(words) < _SHARED_WORDS:
        return None
    values = {kind: found for kind, found in _quantities(text, kinds).items() if _kind(kind) in kinds}
    return _Statement(item, moment, words, values, _speaks_of_change(text)) if values else None


def _overtakes(new: _Statement, old: _Statement) -> bool:
    """Whether two statements are about the same and name different quantities of a kind."""
    if len(new.words & old.words) < _SHARED_WORDS:
        return False
    return any(kind in old.values and found.isdisjoint(old.values[kind]) for kind, found in new.values.items())


@lru_cache(_SENTENCES_KEPT)
def _speaks_of_change(text: str) -> bool:
    return _CHANGE.search(text) is not None


@lru_cache(_SENTENCES_KEPT)
def _quantities(text: str, kinds: frozenset[str]) -> Mapping[str, frozenset[str]]:
    """Return the quantities of a sentence by kind; a count's kind has what is counted, as in ``count card``.

    Those of ``kinds`` are among them.
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
        found.setdefault(f"{_COUNT} {_stem(match[2])}", set()).add(match[1].rstrip(".,"))
    return {kind: frozenset(values) for kind, values in found.items()}


def _kind(name: str) -> str:
    return name.partition(" ")[0]


@lru_cache(_SENTENCES_KEPT)
def content_words(text: str) -> frozenset[str]:
    """Return what a text is about: its words without endings of the plural, and without those that every text has."""
    return frozenset(map(_stem, _WORD.findall(text))) - _STOP


def _stem(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > _SHARED_WORDS and folded.endswith("s") else folded


def _marked(item: ContextItem, by: ContextItem) -> ContextItem:
    assert by.created_at is not None
    return evolve(item, note=f" (perhaps outdated: see {by.created_at.date().isoformat()})")
