"""The reranking stage ``chat``: a message that answers comes before one that asks or only mentions.

The words of a question to memory often match a question of the conversation better than its reply, which has the
answer: "What did you paint?", "A sunrise." They also match messages about the person who is asked for, which contain
the name, better than messages by that person. Both are seen from what a search has already: the text of a message, its
speaker, and the messages around it.

The stage reorders messages among the places of messages; everything else keeps its place.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from attrs import evolve, frozen

from klaw_core import Candidate, Chunk, Query, RerankScore

#: The weight of each feature of a message between people, relative to its score after fusion. Trained by
#: ``benchmarks/chat_reranker.py`` on one half of LoCoMo; the figures are in docs/measurements/retrieval-quality.md.
WEIGHTS: Mapping[str, float] = {
    "fused": 1.0,
    "date": 0.44,
    "length": 0.14,
    "other": -0.13,
    "asks": -0.12,
    "next": 0.55,
    "before": -0.76,
    "reply": 1.43,
}
# In a chat with an assistant, a question in the first person is answered by what the person said, chosen on half of
# BEAM; any other by the assistant, whose answer follows the person's question.
_OF_ONESELF: Mapping[str, float] = {"fused": 1.0, "assistant": -0.4}
_OF_A_SUBJECT: Mapping[str, float] = {"fused": 1.0, "asks": -0.3, "reply": 0.3}
# The relevance of a message: its logarithmic odds from those before the stage, the share of the question's words in its
# own text, and in the question that it replies to. So words of the messages before it count less than its own. Trained
# as the weights, on questions with and without an answer (docs/decisions/0106-calibration.md).
_ODDS, _BEFORE_STAGE, _IN_OWN_TEXT, _IN_REPLIED = -0.32, 0.62, 1.93, 1.27
_LEAST = 1e-6
_ROLES = frozenset({"user", "assistant", "system", "tool"})
_MAX_SPEAKER_CHARACTERS = 80  # as of a transcript
_STEM_CHARACTERS = 5  # the beginning of a word stands for its forms, in any language with endings
_TEXTS_KEPT = 2048

_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"  # scripts without spaces: each character counts as a word
_WORD = rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+"
_ASKS_WHEN = (
    r"\b(?:when|how long|since when|(?:what|which) (?:date|day|month|year|time)"
    r"|когда|как долго|как давно|како(?:го|й) (?:числа|дат|день|год|месяц)"
    r"|wann|wie lange|quand|cuándo|cuando)\b|什么时候|什麼時候|何时|哪(?:天|年|月)|多久"
)
_NAMES_A_DAY = (
    r"\d|\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week|weekend|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)s?\b"
    r"|\b(?:вчера|сегодня|завтра|назад|недел|месяц|год|январ|феврал|март|апрел|ма[яе]|июн|июл|август|сентябр|октябр|ноябр|декабр)"
    r"|昨天|今天|明天|上(?:周|个月|個月|星期)|下(?:周|个月|個月|星期)|去年|今年|明年|[年月]"
)
# What people ask an assistant without a question mark: a question or a request. Exclamations are none, and long
# messages tell something as well.
_REQUEST = (
    r"^\W*(?:(?:please|can|could|would|ok|okay|so|and|hi|hello|hey)\W+)*"
    r"(?:who|whose|what|when|where|which|why|how|is|are|do|does|did|should|write|explain|give|show|tell|list|help"
    r"|make|create|draft|suggest|recommend|find|compare|describe|translate|summari[sz]e|rewrite|fix|convert|calculate|wer|wann|wo|wie|warum|welche[rsnm]?|schreib\w*|erklär\w*|gib|zeig\w*"
    r"|кто|что|где|когда|как|какой|какая|какие|почему|зачем|сколько|напиши\w*|объясни\w*|покажи\w*"
    r"|qui|que|quand|où|comment|pourquoi|quién|qué|cuándo|dónde|cómo|explica|escribe|explique|écris)\b[^!\n]{0,200}$"
)
_FIRST_PERSON = (
    r"\b(?:i|i'm|i've|i'd|my|me|mine|myself|we|our|us|я|мне|меня|мной|мо[йяеиёю]|мо(?:его|ей|ему|их|им|ими|ём)|мы|нас|нам|наш\w*"
    r"|ich|mein\w*|mir|mich|je|mon|ma|mes|moi|yo|mi|mis)\b|我"
)


@frozen
class ChatReranker:
    """Reorders the messages of each chat by a score for what they say and what is around them, which is raw."""

    needs_vectors = False

    def rerank(self, query: Query, candidates: Sequence[Candidate], limit: int, /) -> Sequence[RerankScore] | None:
        """Return the messages of each chat in the places of that chat, with the scores of the places.

        Each message gets the relevance of a message: see :func:`_relevance`. Return None if nothing changes.
        """
        if not candidates or candidates[0].hit.score <= 0:
            return None
        chats: defaultdict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates:
            chats[_chat(candidate)].append(candidate)
        ranked = {chat: iter(_ranked(query.text, own, candidates[0].hit.score)) for chat, own in chats.items()}
        scores = accumulate((candidate.hit.score for candidate in candidates), min)
        ordered = [
            evolve(next(ranked[_chat(place)]), score=score) for place, score in zip(candidates, scores, strict=True)
        ]
        changed = any(
            item.key != place.key or item.relevance is not None for item, place in zip(ordered, candidates, strict=True)
        )
        return ordered[:limit] if changed else None


def _chat(candidate: Candidate) -> str:
    return candidate.stored.path.rpartition("/")[0]


def _ranked(question: str, candidates: Sequence[Candidate], best: float) -> Sequence[RerankScore]:
    """Return the messages of one chat, best first, ties in the order given, with raw scores only."""
    speakers = [_speaker(candidate.stored.chunk) for candidate in candidates]
    fused = [candidate.hit.score / best for candidate in candidates]
    rows = features(question, candidates, speakers)
    if not _replies(speakers):
        weights: Mapping[str, float] = {"fused": 1.0}
    elif "assistant" in speakers:
        weights = _OF_ONESELF if _matches(_FIRST_PERSON, question.casefold()) else _OF_A_SUBJECT
    else:
        weights = WEIGHTS
    scores = [
        score * weights["fused"] + sum(weights.get(name, 0.0) * value for name, value in row.items())
        for score, row in zip(fused, rows, strict=True)
    ]
    relevance = _relevance(candidates, rows)
    order = sorted(range(len(scores)), key=lambda index: -scores[index])
    return [RerankScore(candidates[index].key, 0.0, scores[index], relevance[index]) for index in order]


def _replies(speakers: Iterable[str]) -> bool:
    """Return whether anybody replies in a chat: two people, or an assistant."""
    return "assistant" in speakers or len(set(speakers) - _ROLES - {""}) > 1


def _relevance(candidates: Sequence[Candidate], rows: Sequence[Mapping[str, float]]) -> Sequence[float | None]:
    """Return the relevance of each message: how likely it answers; None if it is unknown.

    A reply is at least as relevant as the question before it, as far as that contains the words that are searched.
    """
    ends = {(each.stored.path, each.stored.chunk.end_line): each.hit.relevance or 0.0 for each in candidates}
    asked = [ends.get((each.stored.path, each.stored.chunk.start_line - 1), 0.0) for each in candidates]
    return [
        None
        if each.hit.relevance is None
        else _calibrated(max(each.hit.relevance, of_question * row["reply"]), row["own"], row["reply"])
        for each, of_question, row in zip(candidates, asked, rows, strict=True)
    ]


def _calibrated(relevance: float, own: float, replied: float) -> float:
    odds = math.log(max(relevance, _LEAST) / max(1.0 - relevance, _LEAST))
    return 1.0 / (1.0 + math.exp(-(_ODDS + _BEFORE_STAGE * odds + _IN_OWN_TEXT * own + _IN_REPLIED * replied)))


def features(
    question: str, candidates: Sequence[Candidate], speakers: Sequence[str] | None = None
) -> Sequence[Mapping[str, float]]:
    """Return the features of each message of a chat between people, apart from its score after fusion.

    ``date``: the question asks when, and the message has a word of a date. ``length``: the logarithm of its length.
    ``other``: the question names one of the speakers, who is not this one. ``assistant``: an assistant said it.
    ``asks``: it has a question mark, or asks an assistant without one. The others are shares, from 0 to 1, of the
    question's words, weighted by how few of the messages contain them: ``own`` in the message, ``next`` in the next
    one, if it was found, ``before`` in the one before, ``reply`` the same if that one asks.
    """
    if speakers is None:
        speakers = [_speaker(candidate.stored.chunk) for candidate in candidates]
    chunks = [candidate.stored.chunk for candidate in candidates]
    texts = [_body(chunk.text) for chunk in chunks]
    before = [_body(chunk.context.rpartition("\n")[2]) for chunk in chunks]  # a message is one line
    names = {word for speaker in set(speakers) for word in _words(speaker)}
    question = question.casefold()
    asked = _words(question)
    named = {
        speaker for speaker in set(speakers) if speaker and not names.isdisjoint(asked) and _is_named(speaker, asked)
    }
    wanted = named.pop() if len(named) == 1 else ""
    own, shares_before = _shares([word for word in asked if word not in names], texts, before)
    places = zip(candidates, chunks, strict=True)
    starts = {(candidate.stored.path, chunk.start_line): index for index, (candidate, chunk) in enumerate(places)}
    with_assistant = "assistant" in speakers  # its long messages have later pieces, which name no speaker
    asks = _asks_or_requests if with_assistant else _asks
    asks_when = _matches(_ASKS_WHEN, question)
    rows = []
    for index, (candidate, chunk) in enumerate(zip(candidates, chunks, strict=True)):
        following = starts.get((candidate.stored.path, chunk.end_line + 1))
        rows.append(
            {
                "date": float(asks_when and _matches(_NAMES_A_DAY, texts[index])),
                "length": math.log1p(len(texts[index])),
                "other": float(bool(wanted and speakers[index]) and speakers[index] != wanted),
                "assistant": float(with_assistant and speakers[index] in {"assistant", ""}),
                "own": own[index],
                "asks": float(asks(texts[index].rpartition("\n")[2])),
                "next": 0.0 if following is None else own[following],
                "before": shares_before[index],
                "reply": shares_before[index] * asks(before[index]),
            }
        )
    return rows


def _shares(words: Iterable[str], *texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """Return how much of a question each text contains, from 0 to 1, for each sequence of texts.

    A word counts by its rarity in the first sequence. Words are compared by their beginnings.
    """
    stems = sorted({word[:_STEM_CHARACTERS] for word in words}, key=lambda stem: (-len(stem), stem))
    if not stems:
        return [[0.0] * len(each) for each in texts]
    find = re.compile("|".join(map(_form, stems))).findall
    found = [[set(find(text)) if text else () for text in each] for each in texts]
    counts = Counter(stem for each in found[0] for stem in each)
    weights = {stem: math.log((len(texts[0]) + 1) / (counts[stem] + 0.5)) for stem in stems}
    total = sum(weights.values())
    return [[min(1.0, sum(map(weights.__getitem__, stems)) / total) for stems in each] for each in found]


def _form(stem: str) -> str:
    """Return a pattern of the words that a stem stands for; one that is shorter than a stem is a whole word."""
    if re.fullmatch(f"[{_UNSPACED}]", stem):
        return stem
    return rf"\b{re.escape(stem)}" + (r"\b" if len(stem) < _STEM_CHARACTERS else "")


def _words(text: str) -> Sequence[str]:
    return re.findall(_WORD, text.casefold())


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def _asks(text: str) -> bool:
    return "?" in text or "？" in text or "؟" in text


def _asks_or_requests(text: str) -> bool:
    return _asks(text) or _matches(_REQUEST, text)


def _is_named(speaker: str, words: Sequence[str]) -> bool:
    return any(len(name) > 1 and name in words for name in _words(speaker))


def _speaker(chunk: Chunk) -> str:
    """Return the casefolded name or role at the beginning of a message; empty for a later piece of a long one."""
    return "" if chunk.continues else _name(chunk.text)


@lru_cache(_TEXTS_KEPT)
def _name(text: str) -> str:
    return text[: _name_end(text)].casefold()


@lru_cache(_TEXTS_KEPT)
def _body(text: str) -> str:
    """Return a message without its speaker, casefolded."""
    end = _name_end(text)
    return (text[end + 2 :] if end else text).casefold()


def _name_end(text: str) -> int:
    """Return where the name at the beginning of a message ends; 0 if there is none."""
    end = text.find(": ", 0, _MAX_SPEAKER_CHARACTERS + 2)
    return 0 if end < 0 or "\n" in text[:end] else end
