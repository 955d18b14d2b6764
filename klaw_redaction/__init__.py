"""Redaction of secrets: keys and tokens of known formats, named passwords, card numbers, and the user's own patterns.

What a secret looks like is in :mod:`klaw_redaction.forms`. Everything that leaves a person's own records (rows,
indexes, facts, prompts, requests to models, messages of errors) passes through a :class:`Redactor`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

from attrs import define, field

from klaw_redaction import forms
from klaw_redaction.readings import PATTERNS, other_readings
from klaw_redaction.seeds import LENGTHS, seed_phrases

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


def _as_tuple(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(patterns)  # attrs asks a converter for its signature, which takes a thousand times longer of `tuple`


@define(frozen=True, slots=False)
class Redactor:
    """Replaces everything that matches a pattern of the library ``regex``.

    If a pattern takes longer than half a second, the whole text is replaced.
    """

    patterns: Sequence[str] = field(default=forms.BUILTIN_PATTERNS, converter=_as_tuple)

    @cached_property
    def recipe(self) -> str:
        """A hash of the patterns; rows with another recipe must be made again."""
        if not self.patterns:
            return ""
        from hashlib import sha256  # which loads OpenSSL; a search by words needs no hash

        parts = (REDACTED, *PATTERNS, str(LENGTHS), *self.patterns)
        return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def text(self, text: str) -> str:
        """Return the text with every match replaced."""
        return self._replaced(text, lambda _: REDACTED)

    def lines(self, text: str) -> str:
        """Return the text with every match replaced and line numbers preserved. Longer texts have a longer timeout."""
        found = self._replaced(text, _replace_lines, _patience(text))
        return found if found != UNREADABLE else UNREADABLE + "\n" * text.count("\n")

    def filled(self, text: str) -> str:
        """Return the text with each character of a match replaced by a block, so that no offset changes."""
        found = self._replaced(text, _fill, _patience(text))
        return found if found != UNREADABLE else FILLER * len(text)

    def _replaced(self, text: str, by: Callable[[str], str], timeout: float = _TIMEOUT_SECONDS) -> str:
        """Return the text with every match replaced, and what matches in another reading of it."""
        if not self.patterns:
            return text
        hints = _Hints(text)
        try:
            found = self._elsewhere(hints, timeout)
            if not found:
                return self._matched(hints, by, timeout)
            # They are hidden from the patterns: none takes what stands for a secret for another one.
            hidden = next(chr(code) for code in range(0xE000, 0xF900) if chr(code) not in text)
            parts, at = [], 0
            for start, stop in found:
                parts += [text[at:start], hidden * (stop - start)]
                at = stop
            matched = self._matched(_Hints("".join([*parts, text[at:]])), by, timeout)
            return re.sub(f"{hidden}+", lambda match: by(match[0]), matched)
        except TimeoutError:
            return UNREADABLE

    def _elsewhere(self, hints: _Hints, timeout: float) -> list[tuple[int, int]]:
        """Return where secrets are that only another reading of a text shows, in order. Raise TimeoutError."""
        found: list[tuple[int, int]] = []
        spans: set[tuple[int, int]] = set()
        for each in other_readings(hints.text, lambda text: (hints if text is hints.text else _Hints(text)).begins):
            filled = self._matched(_Hints(each.text), _fill, max(timeout, _patience(each.text)))
            spans.update(each.spans(filled))
        for start, stop in sorted(spans):
            if found and start < found[-1][1]:
                found[-1] = (found[-1][0], max(stop, found[-1][1]))
            else:
                found.append((start, stop))
        return found

    def _matched(self, hints: _Hints, by: Callable[[str], str], timeout: float) -> str:
        """Return the text with every match replaced. Raise TimeoutError."""
        text = hints.text
        for pattern in self.patterns if text and not (self._is_builtin and not hints.has_any) else ():
            if places := hints.places_of(pattern):
                found = _substituted(pattern, by, text, places, timeout)
                if found != text:
                    text, hints = found, _Hints(found)
        for begin, end in reversed(list(seed_phrases(hints.lower)) if forms.SEED_PHRASE in self.patterns else []):
            text = f"{text[:begin]}{by(text[begin:end])}{text[end:]}"
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
        text, said = self.text(text), self.text(name)
        for sign in (": ", "="):  # a parameter of a URL may be given as a name and a value
            line, prefix = self.text(f"{name}{sign}{text}"), f"{said}{sign}"
            text = line.removeprefix(prefix) if line.startswith(prefix) else text
        return text

    def _under(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return self.beside(name, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = str(value)  # a number is redacted for its name alone
            return value if self.text(number) != number or self.beside(name, number) == number else REDACTED
        if isinstance(value, list | tuple):
            return type(value)(self._under(name, item) for item in self.value(value))
        if isinstance(value, Mapping):
            holds = _compiled_hint(forms.HOLDS)
            return {
                key: self._under(name, item) if holds.fullmatch(key) and not isinstance(item, Mapping) else item
                for key, item in self.metadata(value).items()
            }
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
        self.text = text
        self._whole = ((0, len(text)),)

    @cached_property
    def has_any(self) -> bool:
        """Whether a builtin pattern can match."""
        return self._has_shape or bool(self._names)

    @property
    def begins(self) -> Iterator[int]:
        """Where names of secrets begin, in order."""
        return (begin for _, begin, _ in self._names)

    def places_of(self, pattern: str) -> Sequence[tuple[int, int]]:
        """Return the ranges in which a pattern can match, in order; none if it cannot."""
        if pattern in _SHAPES:
            return self._whole if self._has_shape else ()
        if pattern not in forms.FIRST_LETTERS:
            return self._whole
        names = [name for name in self._names if name[0][0] in forms.FIRST_LETTERS[pattern]]
        if pattern == forms.SEED_PHRASE:  # its words may be on many lines
            return self._whole if any(name in forms.PHRASES for name, *_ in names) else ()
        below = forms.ON_NEAR_LINES.get(pattern, forms.LINES_BELOW)
        if pattern == forms.CODES:  # there are many codes of other kinds
            below, named = forms.LINES_OF_CODES, _compiled_hint(forms.CODES_NAME)
            names = [name for name in names if named.search(self.lower[max(0, name[1] - 40) : name[2] + 40])]
        return self._lines(names, below)

    @cached_property
    def _has_shape(self) -> bool:
        return _compiled_hint(forms.HINT).search(self.text) is not None

    @cached_property
    def lower(self) -> str:
        """The text in lower case, of the same length."""
        return self.text.replace("\u0130", "i").lower()  # no other letter has another length in lower case

    @cached_property
    def _names(self) -> Sequence[tuple[str, int, int]]:
        return [(match[0], *match.span()) for match in _compiled_hint(forms.NAME_HINT).finditer(self.lower)]

    def _lines(self, names: Sequence[tuple[str, int, int]], below: int) -> Sequence[tuple[int, int]]:
        """Return the lines with names, each with the next lines, on which a value may be."""
        places: list[tuple[int, int]] = []
        for _, begin, end in names:
            start = self.text.rfind("\n", 0, begin) + 1
            last = end - 1
            for _ in range(1 + below):
                last = self.text.find("\n", last + 1)
                if last < 0:
                    last = len(self.text)
                    break
            if places and start <= places[-1][1]:
                start = places.pop()[0]
            places.append((start, last))
        return places


def _substituted(
    pattern: str, by: Callable[[str], str], text: str, places: Sequence[tuple[int, int]], timeout: float
) -> str:
    """Return the text with every match in these ranges replaced. Raise TimeoutError."""
    looser, compiled = _compiled(pattern)
    if looser is not None and not looser.search(text, timeout=timeout):
        return text
    is_secret = _is_card if pattern == forms.CARD else bool
    parts, position = [], 0
    for start, end in places:
        found = compiled.sub(
            lambda match: by(match[0]) if is_secret(match[0]) else match[0], text[start:end], timeout=timeout
        )
        parts += [text[position:start], found]
        position = end
    return "".join([*parts, text[position:]])


@lru_cache(maxsize=8)
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


def _replace_lines(secret: str) -> str:
    return REDACTED + "\n" * secret.count("\n")


def _fill(secret: str) -> str:
    return FILLER * len(secret)


def _is_card(number: str) -> bool:
    """Return whether the digits satisfy Luhn's formula (ISO/IEC 7812-1, annex B)."""
    digits = [int(digit) for digit in reversed(number) if digit.isdigit()]
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[1::2])
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0
