"""The hooks of klaw-rerank-basic: three reranking stages that need no model, and extensions that prefer some chunks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from klaw_core import Component, ComponentContext, Extension, NoOptions, Reranker, hookimpl

if TYPE_CHECKING:
    from klaw_rerank_basic.options import ImportanceOptions, MmrOptions, RecencyOptions

# What every question with a day contains, in any case. Most contain none of it, so the extension is not built for them.
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
QUESTIONS = (
    r"\b(?:today|tonight|yesterday|tomorrow|ago|(?:last|past|previous|this|current|next|coming)\W+(?:night|morning"
    r"|afternoon|evening|week|weekend|month|year|\w+day)|heute|(?:vor)?gestern"
    r"|(?:letzt|vorig|dies|nächst)\w+\W+(?:woche|monat|jahr|\w+tag|mittwoch)\w*|(?:on|am)\W+\w+(?:day|tag|mittwoch)s?"
    rf"|vor\W+\w+\W+(?:tag|woche|monat|jahr)\w*|сегодня|(?:поза)?вчера|(?:после)?завтра|назад)\b|\b(?:in|of|from|last|im|в)\s+{_MONTH}"
    r"|\bв\s+(?:янв|фев|мар|апр|ма[яе]|июн|июл|авг|сен|окт|ноя|дек)"
    r"|\b(?:прошл|эт[оуа]|следующ|будущ)|[今昨明前后後去][天晚早日年夜]|[天周年期拜月]之?以?前|[上下这這本]个?[周月星礼]"
    rf"|\d{{4}}[-/.]\d|\d\.\d{{1,2}}\.\d{{4}}|\d(?:st|nd|rd|th)?(?:\s+of)?\s+{_MONTH}|\b{_MONTH}[a-z]*\.?,?\s+\d"
)
# What is only a name: one to five words without a question mark. Or the question where it is defined.
NAMES = r"^\W*[^\s?]+(?:\s+[^\s?]+){0,4}[^\w?]*$|\b(?:defin|implement|declar)\w*\b"


@hookimpl
def klaw_rerankers() -> Iterable[Component[Any, Reranker]]:
    """Yield ``recency``, ``importance`` and ``mmr``."""
    from klaw_rerank_basic.options import ImportanceOptions, MmrOptions, RecencyOptions

    yield Component("recency", RecencyOptions, _recency, api=2, summary="lower scores for older results")
    yield Component("importance", ImportanceOptions, _importance, api=2, summary="weights results by source")
    summary = "maximal marginal relevance: lower scores for results that repeat a better one"
    yield Component("mmr", MmrOptions, _mmr, api=2, summary=summary)


def _recency(options: RecencyOptions, _context: ComponentContext) -> Reranker:
    from klaw_rerank_basic.recency import Recency

    return Recency(options)


def _importance(options: ImportanceOptions, _context: ComponentContext) -> Reranker:
    from klaw_rerank_basic.importance import Importance

    return Importance(options)


def _mmr(options: MmrOptions, _context: ComponentContext) -> Reranker:
    from klaw_rerank_basic.mmr import MaximalMarginalRelevance

    return MaximalMarginalRelevance(options)


def _date(_options: NoOptions, _context: ComponentContext) -> Extension:
    from klaw_rerank_basic.date import Dates

    return Dates()


def _definition(_options: NoOptions, _context: ComponentContext) -> Extension:
    from klaw_rerank_basic.definition import Definitions

    return Definitions()


@hookimpl
def klaw_extensions() -> Iterable[Component[Any, Extension]]:
    """Yield ``date`` and ``definition``."""
    summary = "prefers the days in a question"
    yield Component("date", NoOptions, _date, api=2, summary=summary, rank=80, questions=QUESTIONS)
    summary = "prefers what is named like the question"
    yield Component("definition", NoOptions, _definition, api=2, summary=summary, rank=81, questions=NAMES)
