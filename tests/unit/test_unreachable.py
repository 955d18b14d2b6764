"""Which texts words cannot lead to: the same, however much of a text is looked at."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.searching.relevance import is_unreachable

_ALPHABET = "ab cdeÄß1_.жИ所有权ا"


def plain(question: str, text: str) -> bool:
    """Say the same in the plainest way: every letter is named, every word is listed."""
    script, other = _script(question), _script(text)
    if script and other != script:
        return True
    asked, held = (set(re.findall(r"[^\W\d_]+", side.casefold())) for side in (question, text))
    return len(asked) >= 5 and not asked & held


def _script(text: str) -> str:
    found = Counter(unicodedata.name(letter, "?").partition(" ")[0] for letter in text[:400] if letter.isalpha())
    return found.most_common(1)[0][0] if found else ""


@given(st.text(_ALPHABET, max_size=30), st.text(_ALPHABET, max_size=60))
def test_the_fast_check_agrees_with_the_definition(question: str, text: str) -> None:
    assert is_unreachable(question, text) == plain(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("how does ownership work here", "Владение переменной"),
        ("how does ownership work here", "An entirely different matter."),
        ("жa", "Aж"),
    ],
)
def test_a_text_in_another_script_or_without_a_shared_word_is_unreachable(question: str, text: str) -> None:
    assert is_unreachable(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("how does ownership work here", "What ownership is."),
        ("ownership", "An entirely different matter."),
        ("123", "Владение"),
    ],
)
def test_a_shared_word_or_a_short_question_is_not_unreachable(question: str, text: str) -> None:
    assert not is_unreachable(question, text)
