"""The gate: detect messages that need nothing from memory. In doubt, search. English, Russian, Chinese.

A message needs nothing if it is code, or a short one that consists of nothing but words and phrases of the lists: thanks,
greetings, reactions. One other word, a question mark or a word about memory is enough to search (decision 0098).
"""

from __future__ import annotations

import re
from functools import lru_cache

from klaw_facts.code_lines import is_code_line
from klaw_facts.gate_words import EMPTY_CHARACTERS, EMPTY_PHRASES, EMPTY_WORDS, TOPICS
from klaw_words.lazy_patterns import lazy_pattern

_FLAGS = re.IGNORECASE
_QUESTION = lazy_pattern(
    r"[?？]|\b(?:who|whom|whose|what|when|where|which|why|how|do you|did (?:i|we)|is there|are there|was|were|can you|could you"
    r"|tell me|show me|find|list|explain|summari[sz]e|describe|help me)\b"
    r"|\b(?:кто|кого|кому|что|чего|когда|где|куда|откуда|какой|какая|какое|какие|каком|почему|зачем|как|сколько|чей|ли"
    r"|расскажи|покажи|найди|объясни|напиши|помоги)\b|谁|什么|何时|什么时候|哪|为什么|怎么|如何|多少|几|吗|呢|告诉我|帮我|说说|列出",
    _FLAGS,
)
_MEMORY = lazy_pattern(
    r"\b(?:remember|remind|recall|forgot|forget|earlier|before|previously|last time|again|we (?:said|decided|discussed|talked)|you said"
    r"|i (?:said|told)|as usual|my usual|same as)\b"
    r"|\b(?:помнишь|помни|запомни|напомни|забыл\w*|раньше|прошл\w+ раз|опять|снова|мы (?:решили|говорили|обсуждали)|ты говорил\w*"
    r"|я говорил\w*|как обычно)\b|记得|记住|提醒|忘了|之前|上次|以前|我们说过|你说过|我说过|老样子",
    _FLAGS,
)
# Words without content. A short message that consists only of these is an acknowledgement, a greeting or a farewell.
_EMPTY_PHRASES = lazy_pattern(
    r"\bтому же\b|\bmy (?:bad|pleasure|fault|mistake|apologies)\b|\b(?:great|good|nice|awesome|amazing|excellent|fantastic|wonderful|solid|stellar) (?:job|work|one|catch|call|idea|find|stuff|answer)\b"
    r"|\b(?:what a relief)\b|\bone (?:sec|second|moment|minute)\b|\bby the way thanks\b|\b3q\b|\bh{2,}\b|\bне за что\b|\bв самый раз\b|\bпринято к сведению\b|\bне тот чат\b|\bдай(?:те)? (?:мне )?(?:секунд\w+|минут\w+)\b"
    r"|正是我(?:想)?要的|就是这个|正合我意|我去去就回|什么的|说得(?:对|是|有理)|怎么都行|没什么|不用说|也谢谢|你也(?:是|一样|早点)|再见|再会|要不要紧|不要紧|没那回事|不用(?:了|谢|客气)|要的(?=$|\W)|为你点赞|给你点赞",
    re.IGNORECASE,
)
# Messages that need memory although their words have no content: choices, names, requests for help, feelings.
_NEEDING = lazy_pattern(
    r"\bhelp me\b|^\W*(?:please\W+)?(?:help|need|wait|stop|save)\b(?! you)|\b(?:i|we) (?:need|feel|have)\b|\bin love\b"
    r"|\b(?:i|we) (?:can't|cannot|cant|can’t)(?! (?:wait|thank|complain|believe|tell))|\bi(?:'|’)?m (?:not )?(?:feeling|sick|sleepy|lost|crying|in)\b|"
    r""
    r"\b(?:first|second|last|third|other) one\b|^\W*(?:so|ok|okay|and|well)?\W*(?:should|could|would|can|shall|may|might|do|does|is|are|will) (?:i|we|you|it|that|this|they)\b"
    r"|^\W*(?:both|either|neither|same|the (?:same|best)( one)?|оба|обе|то же|тот же)\W*$|(?:这|那)(?:个|里|些|边|天)",
    re.IGNORECASE,
)
# Reports that something failed or is wrong, and short orders, in words that acknowledgements contain as well.
_REPORTING = lazy_pattern(
    r"\bnothing works?\b|\bsame (?:problem|error|issue|thing)\b|\b(?:not|wrong) (?:that|this|the \w+) one\b|\bnow the\b"
    r"|\bне (?:помог\w*|работа\w+|тот|та|то)\b|\bто же самое\b|\bтеперь \w+(?:ое|ая|ые|ый|ую)\b|\bбыл\w* прав\w*\b"
    r"|有没有|还没|没用|解释|错误|天气|(?:明天|中午|下周)(?![见聊说好])",
    _FLAGS,
)
_MAX_PHRASE_CHARACTERS = 8
_REPEATED = lazy_pattern(r"([^\W\d_])\1{1,}")
# Codes for pictures in chat programs: [捂脸], :smile:
_EMOJI_NAME = lazy_pattern(r"\[[一-鿿]{1,4}\]|:[a-z_]{2,20}:|\b(?:6{1,6}|2?3{3,}|8{2,}|5{3,})\b")
_WORD_OR_CHARACTER = lazy_pattern(r"[一-鿿]|(?:(?![一-鿿])[^\W_])+(?:['’][^\W\d_]+)?")
_LAUGH = lazy_pattern(r"(?:ha|he|ха|хе){2,}h?|l+o+l+|(?:y+a+y+|a+w+|o+h+|h+m+|m+)", re.IGNORECASE)
_MAX_ACKNOWLEDGEMENT_CHARACTERS = 100
_DECISIONS_KEPT = 16
_CODE_LINE = lazy_pattern(
    r"^\s*(?:[{}\])]|//|#!|#include|import |from \S+ import|def |class |func |fn |public |private |const |let |var |return |if \(|for \(|while \("
    r"|<\/?\w|\$ |>>> |at \S+\(|Traceback|File \"|[\w.]+\s*[=:]\s*\S|\s*\S.*[;{]\s*$|\+\s|-\s{2}|@@|diff )"
)
_FENCED = lazy_pattern(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_CODE_SHARE = 0.6


@lru_cache(_DECISIONS_KEPT)  # a context asks twice
def declines(message: str) -> str:
    """Return why a message needs nothing from memory; empty if memory should be searched."""
    text = message.strip()
    if not any(character.isalnum() for character in text):
        return "the message contains no words"
    prose = _FENCED.sub(" ", text).strip()
    if _MEMORY.search(prose):
        return ""
    if len(text) <= _MAX_ACKNOWLEDGEMENT_CHARACTERS and _is_acknowledgement(text):
        return "the message is an acknowledgement"
    if _QUESTION.search(prose) and not _is_code(prose):
        return ""
    if (not prose and text) or _is_code(prose):
        return "the message is code"
    return ""


def _is_acknowledgement(text: str) -> bool:
    if "?" in text or "？" in text:
        return False
    plain = _EMOJI_NAME.sub(" ", _EMPTY_PHRASES.sub(" ok ", text.replace("’", "'")))
    words = _WORD_OR_CHARACTER.findall(plain)
    lower = [word.casefold() for word in words]
    if not words:
        return bool(_EMOJI_NAME.search(text))
    if _REPORTING.search(plain) or TOPICS.issuperset(lower):
        return False
    if not all(_is_empty(word) for word in lower) and not _consists_of_phrases(lower):
        return False
    return _NEEDING.search(plain) is None


def _is_empty(word: str) -> bool:
    if word in EMPTY_WORDS or word in EMPTY_CHARACTERS or _LAUGH.fullmatch(word):
        return True
    short = _REPEATED.sub(r"\1", word)  # niiice, спасибооо
    return short != word and (short in EMPTY_WORDS or _REPEATED.sub(r"\1\1", word) in EMPTY_WORDS)


def _consists_of_phrases(words: list[str]) -> bool:
    """Return whether a Chinese message can be cut into phrases of acknowledgements."""
    text = "".join(words)
    ends = [True]
    for end in range(1, len(text) + 1):
        starts = range(max(0, end - _MAX_PHRASE_CHARACTERS), end)
        ends.append(any(ends[start] and text[start:end] in EMPTY_PHRASES for start in starts))
    return ends[-1]


def _is_code(text: str) -> bool:
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1:
        return is_code_line(lines[0].strip())
    return len(lines) > 1 and sum(bool(_CODE_LINE.search(line)) for line in lines) > _MAX_CODE_SHARE * len(lines)
