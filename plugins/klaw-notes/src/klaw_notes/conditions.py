"""Conditions that people type into the question: ``tag:energy``, ``path:People/``, ``-word``, ``"a phrase"``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from attrs import define, field, frozen

from klaw_core import Condition, Preference, PreferringExtension, StoredChunk, quoted
from klaw_redaction import Redactor
from klaw_words.treatment import index_text

# Characters. A longer text, or one of several lines, is a message and not a question that somebody typed.
_MAX_CHARACTERS = 200
# A condition between spaces: what it is about, and its value, which may be quoted. A word that is left out has three
# letters or more, because `-l` and `-la` are options of commands.
_CONDITION = re.compile(
    r'(?<!\S)(?P<sign>-?)(?:(?P<key>tags?|path):(?:"(?P<quoted>[^"]+)"|(?P<value>[^\s:"/][^\s"]*))'
    r'|(?P<word>(?<=-)(?:[^\W\d_]{3}[\w\'’]*|"[^"]+")))(?!\S)',
    re.IGNORECASE,
)
_PHRASES = re.compile(r'\s*(?:"[^"]+"\s*)+')
_WORD = re.compile(r"[^\W_]+")
_PHRASE = re.compile(r'"([^"]+)"')


@define(eq=False)
class _Read:
    """What was read in a question."""

    tags: list[str] = field(factory=list)
    other_tags: list[str] = field(factory=list)
    paths: list[str] = field(factory=list)
    other_paths: list[str] = field(factory=list)
    without: list[str] = field(factory=list)
    phrases: list[str] = field(factory=list)

    def take(self, match: re.Match[str]) -> str:
        """Take a condition, and leave a space."""
        negated = bool(match["sign"])
        if (key := match["key"]) is None:
            self.without.append(match["word"].strip('"'))
        else:
            value = (match["quoted"] or match["value"]).strip()
            if key.lower() == "path":
                (self.other_paths if negated else self.paths).append(value)
            else:
                (self.other_tags if negated else self.tags).append(value.removeprefix("#").rstrip("/"))
        return " "

    @property
    def has_conditions(self) -> bool:
        """Whether there is a condition that says which notes to list: not only words to leave out."""
        return bool(self.tags or self.other_tags or self.paths or self.other_paths)

    def described(self) -> str:
        """Return the conditions for the user."""
        kinds = (
            ("tag", self.tags),
            ("not the tag", self.other_tags),
            ("path", self.paths),
            ("not the path", self.other_paths),
            ("without", self.without),
            ("with the words", self.phrases),
        )
        return ", ".join(f"{kind} {quoted(value)}" for kind, values in kinds for value in values)


@frozen(eq=False)
class _Holds:
    """Whether a chunk satisfies the conditions that are not on metadata."""

    paths: Sequence[str]
    other_paths: Sequence[str]
    without: Sequence[str]
    phrases: Sequence[str]

    def __call__(self, stored: StoredChunk) -> bool:
        path = stored.path.casefold()
        if not all(part in path for part in self.paths) or any(part in path for part in self.other_paths):
            return False
        if not (self.without or self.phrases):
            return True
        chunk = stored.chunk
        said = _words("\n".join((chunk.title, *chunk.heading, chunk.text)))
        return all(each in said for each in self.phrases) and not any(each in said for each in self.without)


class Conditions(PreferringExtension):
    """Reads conditions in questions; the words around them are what is searched for.

    A question with a secret is left as it is: its parts would be quoted without what shows that they are a secret.
    """

    name = "conditions"
    _redactor = Redactor()

    def prefer(self, question: str, /) -> Preference | None:
        """Return the conditions of a question; None if it has none."""
        if len(question) > _MAX_CHARACTERS or "\n" in question.strip() or self._redactor.text(question) != question:
            return None
        read = _Read()
        rest = " ".join(_CONDITION.sub(read.take, question).split())
        if _PHRASES.fullmatch(question):  # a model quotes what it searches for, too, and needs what is near
            return Preference(1.0, _Holds((), (), (), [_words(text) for text in _PHRASE.findall(question)]))
        if _PHRASES.fullmatch(rest):
            read.phrases = _PHRASE.findall(rest)
        if not (said := read.described()) or not (rest or read.has_conditions):
            return None
        without, phrases = ([_words(text) for text in texts] for texts in (read.without, read.phrases))
        paths, others = ([path.casefold() for path in each] for each in (read.paths, read.other_paths))
        return Preference(
            0.0,
            _Holds(paths, others, without, phrases),
            requires=True,
            question=rest,
            conditions=tuple(_conditions(read)),
            notice=f"read as conditions: {said}",
        )


def _conditions(read: _Read) -> Iterator[Condition]:
    for tag in read.tags:
        yield Condition("tags", "=", tag)
    for tag in read.other_tags:
        yield Condition("tags", "!=", tag)


def _words(text: str) -> str:
    """Return the words of a text between spaces, without case, accents and the ``s`` of a plural.

    They are not stemmed, because a person who leaves out radiators does not mean what radiates.
    """
    words = (word.removesuffix("s") or word for word in _WORD.findall(index_text(text).lower()))
    return f" {' '.join(words)} "
