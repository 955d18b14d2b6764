"""Arrange what a context found, by rules for English, Russian and Chinese: ``[extensions.facts] arrange``.

Each rule was measured (docs/explanation/facts-quality.md), and none adds or removes an item.
"""

from __future__ import annotations

from collections.abc import Sequence

from klaw_facts.arranging.replies import put_replies_after_questions
from klaw_facts.arranging.speakers import prefer_named_speaker
from klaw_facts.arranging.stale import mark_stale
from klaw_tools import ContextItem


def arranged(items: Sequence[ContextItem], question: str) -> list[ContextItem]:
    """Return the items: first those of a named speaker, replies after their questions, outdated statements marked."""
    return mark_stale(put_replies_after_questions(prefer_named_speaker(items, question)), question)
