"""What the writer of a message copied into it: programs, quotations, letters, and talks of others.

Sentences of these become no facts. Which sentences state a slot is decided in `slots.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from klaw_words.lazy_patterns import lazy_pattern

_LABELS = (
    r"(?:(?:please )?(?:note|remember|memorize|keep in mind|be aware)(?: that| this)?|notes?|reminder|updates?|corrections?|(?:some |big |good |great )?news|ps|p\.s\.?|nb|fyi|btw"
    r"|by the way|(?:a )?quick (?:one|note|update|question)|for the record|for your information|info|information|about me|profile|(?:fun |quick )?facts?|my (?:address|details|data|situation|story|profile|info)|here(?:['’]s| is| are)(?: my| some)? [\w ]{1,20}|bio|intro|introduction|background|context|personal"
    r"|важно|запомни(?:те)?|заметка|кстати|обо мне|новости|о себе|п\.?с\.?|请记住|记住|备注|注意|更新|补充)"
)
# A copied program, a quotation of a message, and what follows the head of a letter.
_FENCE = lazy_pattern(r"^[ \t]*(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINE = lazy_pattern(r"^[ \t]*>[^\n]*", re.MULTILINE)
_HEAD = "From|To|Sent|Subject|От|Кому|Тема|发件人|收件人|主题"
_LETTER = lazy_pattern(
    rf"^[ \t>*]*(?:{_HEAD})[*]?[:：][^\n]*\n(?:[^\n]*\n){{0,3}}?"
    rf"[ \t>*]*(?:{_HEAD}|Date|Cc|Дата|日期)[*]?[:：].*\Z"
    r"|^-{2,} ?(?:Forwarded message|Original message|Исходное сообщение|Пересылаемое сообщение).*\Z",
    re.MULTILINE | re.DOTALL,
)
_TURN = lazy_pattern(
    rf"^[ \t*_-]*(?:\[[^\]\n]{{1,30}}\][ \t]*)?(?!(?i:{_LABELS})[ \t]*[*_]*[:：])"
    r"(?:[A-ZА-ЯЁ][\w.’'-]{0,20}(?: [A-ZА-ЯЁ][\w.’'-]{0,20}){0,2}|me|user|assistant|system|bot|я|[一-鿿]{1,4})"
    r"(?: \([^)\n]{1,30}\))?[*_]*[:：][^\n]*",
    re.MULTILINE,
)


@lru_cache(64)
def _copied(content: str) -> tuple[tuple[int, int], ...]:
    """Return the parts of a message that its writer copied: programs, quotations, letters, and talks of others."""
    turns = [*_TURN.finditer(content)]
    patterns = (_FENCE, _QUOTED_LINE, _LETTER)
    found = [match.span() for pattern in patterns for match in pattern.finditer(content)]
    is_talk = len({turn[0].partition(":")[0] for turn in turns}) > 1
    return (*found, *(turn.span() for turn in turns if is_talk))


def is_copied(content: str, start: int, end: int) -> bool:
    """Return whether characters of a message are not the words of its writer."""
    return _overlaps(_copied(content), start, end)


def _overlaps(spans: Iterable[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)
