"""Redaction of secrets: keys and tokens of known formats, named passwords, card numbers, and the user's own patterns.

What a secret looks like is in :mod:`klaw_core.redaction.forms`. Everything that leaves a person's own records (rows,
indexes, facts, prompts, requests to models, messages of errors) passes through a :class:`Redactor`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from attrs import define, field

from klaw_core.redaction import forms

#: Replaces a secret.
REDACTED = "[redacted]"
#: Replaces the whole text if a pattern times out, so that no secret in it is shown.
UNREADABLE = "[redacted: a pattern took too long]"
#: Fills the place of each character of a secret where the length of the text must not change.
FILLER = "█"
_TIMEOUT_SECONDS = 0.5
_CHARACTERS_PER_SECOND = 500_000
# A word that looks random, with letters after digits, unlike "Python3". A tag may be one.
_RANDOM = r"(?=\S*[0-9][A-Za-z])(?:(?=\S*[a-z])(?=\S*[A-Z])|(?=\S{16})(?=(?:\D*\d){4}))\S{8,200}"
_MAX_NAME = 60
_SHAPES = frozenset(forms.SHAPES)


@define(frozen=True, slots=False)
class Redactor:
    """Replaces everything that matches a pattern of the library ``regex``.

    If a pattern takes longer than half a second, the whole text is replaced.
    """

    patterns: Sequence[str] = field(default=forms.BUILTIN_PATTERNS, converter=tuple)

    @cached_property
    def recipe(self) -> str:
        """A hash of the patterns; rows with another recipe must be made again."""
        if not self.patterns:
            return ""
        return hashlib.sha256("\0".join((REDACTED, *self.patterns)).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def text(self, text: str) -> str:
        """Return the text with every match replaced."""
        return self._replaced(text, REDACTED)

    def lines(self, text: str) -> str:
        """Return the text with every match replaced and line numbers preserved. Longer texts have a longer timeout."""
        found = self._replaced(text, _replace_lines, _patience(text))
        return found if found != UNREADABLE else UNREADABLE + "\n" * text.count("\n")

    def filled(self, text: str) -> str:
        """Return the text with each character of a match replaced by a block, so that no offset changes."""
        found = self._replaced(text, _fill, _patience(text))
        return found if found != UNREADABLE else FILLER * len(text)

    def _replaced(self, text: str, by: str | Callable[[Any], str], timeout: float = _TIMEOUT_SECONDS) -> str:
        if not text or (self._is_builtin and _compiled_hint(forms.ANY_HINT).search(text) is None):
            return text
        hints = _Hints(text)
        try:
            for pattern in self.patterns:
                if places := hints.places_of(pattern):
                    found = _substituted(pattern, by, text, places, timeout)
                    if found != text:
                        text, hints = found, _Hints(found)
        except TimeoutError:
            return UNREADABLE
        return text

    @cached_property
    def _is_builtin(self) -> bool:
        """Whether there are only builtin patterns, so that one hint can tell that none of them matches."""
        return all(pattern in _SHAPES or pattern in forms.FIRST_LETTERS for pattern in self.patterns)

    def metadata(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return a JSON object in which all strings are redacted, at any depth, also keys.

        A value is judged beside its key: ``{"password": "hunter2"}``.
        """
        return {self.text(key): self._under(key, item) for key, item in value.items()}

    def beside(self, name: str, text: str) -> str:
        """Return a text that stands beside a name, such as that of a password, with every match replaced."""
        text, prefix = self.text(text), f"{self.text(name)}: "
        line = self.text(f"{name}: {text}")
        return line.removeprefix(prefix) if line.startswith(prefix) else text

    def _under(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self.beside(name, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = str(value)  # a number is redacted for its name alone
            return value if self.text(number) != number or self.beside(name, number) == number else REDACTED
        if isinstance(value, list | tuple):
            return type(value)(self._under(name, item) for item in self.value(value))
        return self.value(value)

    def value(self, value: Any) -> Any:
        """Return a JSON value, or a tuple of them, in which all strings are redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.metadata(value)
        if isinstance(value, list | tuple):
            return type(value)(self._together([self.value(item) for item in value]))
        return value

    def _together(self, items: list[Any]) -> list[Any]:
        """Return the items of a list; a word that looks random beside the name of a password or a key is redacted."""
        words = [item for item in items if isinstance(item, str) and _compiled_hint(_RANDOM).fullmatch(item)]
        if not words:
            return items
        names = [item for item in items if isinstance(item, str) and len(item) <= _MAX_NAME and item not in words]
        return [
            REDACTED if item in words and any(self.text(said := f"{name} {item}") != said for name in names) else item
            for item in items
        ]


class _Hints:
    """Where in a text the patterns can match; each hint is looked for once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._whole = ((0, len(text)),)

    def places_of(self, pattern: str) -> Sequence[tuple[int, int]]:
        """Return the ranges in which a pattern can match, in order; none if it cannot."""
        if pattern in _SHAPES:
            return self._whole if self._has_shape else ()
        if pattern not in forms.FIRST_LETTERS:
            return self._whole
        names = [name for name in self._names if name[0][0] in forms.FIRST_LETTERS[pattern]]
        if pattern == forms.SEED_PHRASE:  # its words may be on many lines
            return self._whole if any(name in forms.PHRASES for name, *_ in names) else ()
        return self._lines(names) if len(self._lower) == len(self._text) else self._whole

    @cached_property
    def _has_shape(self) -> bool:
        return _compiled_hint(forms.HINT).search(self._text) is not None

    @cached_property
    def _lower(self) -> str:
        return self._text.lower()

    @cached_property
    def _names(self) -> Sequence[tuple[str, int, int]]:
        return [(match[0], *match.span()) for match in _compiled_hint(forms.NAME_HINT).finditer(self._lower)]

    def _lines(self, names: Sequence[tuple[str, int, int]]) -> Sequence[tuple[int, int]]:
        """Return the lines with names, each with the next lines, on which a value may be."""
        places: list[tuple[int, int]] = []
        for _, begin, end in names:
            start = self._text.rfind("\n", 0, begin) + 1
            last = end - 1
            for _ in range(1 + forms.LINES_BELOW):
                last = self._text.find("\n", last + 1)
                if last < 0:
                    last = len(self._text)
                    break
            if places and start <= places[-1][1]:
                start = places.pop()[0]
            places.append((start, last))
        return places


def _substituted(
    pattern: str, by: str | Callable[[Any], str], text: str, places: Sequence[tuple[int, int]], timeout: float
) -> str:
    """Return the text with every match in these ranges replaced. Raise TimeoutError."""
    looser, compiled = _compiled(pattern)
    if looser is not None and not looser.search(text, timeout=timeout):
        return text
    by = _checked(by) if pattern == forms.CARD else by
    parts, position = [], 0
    for start, end in places:
        parts += [text[position:start], compiled.sub(by, text[start:end], timeout=timeout)]
        position = end
    return "".join([*parts, text[position:]])


@lru_cache(maxsize=4)
def _compiled_hint(hint: str = forms.HINT) -> re.Pattern[str]:
    return re.compile(hint)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[Any, Any]:
    """Return a looser pattern to search first (or None), and the pattern."""
    import regex  # type: ignore[import-untyped]  # it ships no types; few texts need it

    looser = forms.LOOSER.get(pattern)
    return None if looser is None else regex.compile(looser), regex.compile(pattern)


def _patience(text: str) -> float:
    return max(_TIMEOUT_SECONDS, len(text) / _CHARACTERS_PER_SECOND)


def _replace_lines(match: Any) -> str:
    secret: str = match[0]
    return REDACTED + "\n" * secret.count("\n")


def _fill(match: Any) -> str:
    return FILLER * len(match[0])


def _checked(by: str | Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a replacement for numbers that look like those of cards: a number with another checksum stays."""

    def replace(match: Any) -> str:
        number: str = match[0]
        if not _is_card(number):
            return number
        return by if isinstance(by, str) else by(match)

    return replace


def _is_card(number: str) -> bool:
    """Return whether the digits satisfy Luhn's formula (ISO/IEC 7812-1, annex B)."""
    digits = [int(digit) for digit in reversed(number) if digit.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
