"""Of the plain forms of statements, only those are tried of which a text has one of their words."""

from __future__ import annotations

import re
from re import _constants as codes  # type: ignore[attr-defined]  # the parser of regular expressions
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from klaw_facts.extracting import endings, forms, slots
from klaw_words.lazy_patterns import lazy_pattern

_FEW = 4


def _without(words: tuple[str, ...], tree: Any, ends: frozenset[str] = frozenset(("",))) -> frozenset[str]:
    """Return how texts may end that a pattern matches and that have none of the words; no end if there are none."""
    for code, given in tree:
        if code is codes.LITERAL:
            ends = frozenset(end + chr(given).casefold() for end in ends)
        elif code is codes.IN and len(given) <= _FEW and all(item[0] is codes.LITERAL for item in given):
            ends = frozenset(end + chr(item[1]).casefold() for end in ends for item in given)
        elif code is codes.SUBPATTERN:
            ends = _without(words, given[-1], ends)
        elif code is codes.BRANCH:
            ends = frozenset().union(*(_without(words, branch, ends) for branch in given[1]))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            least, most, repeated = given
            once = _without(words, repeated, ends)
            ends = ends | once if least == 0 else once
            ends = ends if most == 1 or not ends else frozenset(("",))
        elif code not in (codes.AT, codes.ASSERT, codes.ASSERT_NOT):
            ends = frozenset(("",)) if ends else ends
        ends = frozenset(end for end in ends if not any(word in end for word in words))
    return ends


@pytest.mark.parametrize(("slot", "kind", "form", "words"), forms.FORMS)
def test_whatever_has_a_form_has_one_of_its_words(slot: str, kind: str, form: str, words: tuple[str, ...]) -> None:
    without = [_without(words, parser.parse(pattern, re.IGNORECASE)) for pattern in forms.with_times(kind, form)]
    assert without, slot
    assert not any(without), slot


@pytest.mark.parametrize(
    ("form", "words"),
    [
        *((form, words) for form, _, words in endings._DENIALS),
        *((form, words) for forms, _, words in endings._WITHOUT for form in forms),
    ],
)
def test_whatever_says_that_something_has_ended_has_one_of_its_words(form: str, words: tuple[str, ...]) -> None:
    assert not _without(words, parser.parse(form, re.IGNORECASE))


def test_a_form_without_its_words_would_be_noticed() -> None:
    assert _without(("live",), parser.parse("I (?:live|stay) here"))
    assert _without(("live",), parser.parse("I (?:live )?here"))
    assert not _without(("live", "stay"), parser.parse("I (?:live|stay) here"))


def test_a_text_without_words_of_forms_compiles_none(monkeypatch: pytest.MonkeyPatch) -> None:
    forms.patterns.cache_clear()
    slots.all_stated_in.cache_clear()
    compiled = []
    given = re.compile

    def noted(pattern: str, flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return given(pattern, flags)

    monkeypatch.setattr("klaw_words.lazy_patterns.re.compile", noted)
    known = {pattern for _, kind, form, _ in forms.FORMS for pattern in forms.with_times(kind, form)}
    assert slots.slot_of("The sky is blue.") is None
    assert not known.intersection(compiled)
    assert slots.slot_of("My email is ada@example.org.") == ("email", "ada@example.org")
    assert 1 <= len(known.intersection(compiled)) <= 3


def test_a_lazy_pattern_is_that_pattern() -> None:
    lazy, compiled = lazy_pattern("(?P<word>[a-z]+)!", re.IGNORECASE), re.compile("(?P<word>[a-z]+)!", re.IGNORECASE)
    assert lazy.sub("-", "Ada! 1!") == compiled.sub("-", "Ada! 1!")
    assert (lazy.pattern, lazy.flags, lazy.groupindex) == (compiled.pattern, compiled.flags, compiled.groupindex)
    found = lazy.search("so: Ada!")
    assert found is not None
    assert found["word"] == "Ada"
    with pytest.raises(re.error):
        lazy_pattern("(").match("")
