"""The gate in front of the journal of facts: no secret passes it, through whichever door a fact comes.

A sentence with a secret is dropped, because without the secret it says nothing. A sentence that says where the secret
is kept stays, without the secret.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

from klaw_core import RecordError
from klaw_facts.extracting.sentences import sentences
from klaw_facts.values import Fact
from klaw_redaction import FILLER, REDACTED, Redactor
from klaw_words.lazy_patterns import lazy_pattern

#: Where a secret is kept: "is stored in 1Password", "лежит в сейфе", "保存在保险箱里".
KEPT = (
    r"\b(?:stored|kept|saved|lives|located|backed up|written(?: down)?|hidden|found)\b[^.!?\n]{0,40}?"
    r"\b(?:in|on|at|under|inside|with)\b"
    r"|\b(?:in|from|on|see|ask|use)\s(?:[\w'’-]+\s){0,4}?(?:\w*vault|1password|bitwarden|lastpass|keepass\w*|dashlane|keychain|keyring"
    r"|(?:password|secrets?) manager|safe|wallet|drawer|notebook|envelope|\.env\b|env(?:ironment)? (?:file|variable))"
    r"|\b(?:хранится|лежит|сохран[её]н\w*|записан\w*|находится|спрятан\w*)\b[^.!?\n]{0,40}?\b(?:в|на|у|под)\b"
    r"|\bв\s(?:\w+\s){0,2}?(?:1password|bitwarden|keepass\w*|сейфе|хранилище|менеджере паролей|связке ключей)"
    r"|(?:存|保存|放|记|写|藏)(?:在|到|于)|在[^。！？\n]{0,20}?(?:1password|保险箱|密码管理器|钥匙串|\.env)"
)
_KEPT = lazy_pattern(KEPT, re.IGNORECASE)
_FILLED = lazy_pattern(f"{FILLER}+")
_EMPTY_ITEM = lazy_pattern(r"(?m)^[ \t]*(?:[-*•>]|\d{1,3}[.)]|#{1,6})?[ \t]*(?:\n|\Z)")
_SIGNS = (": ", "=")  # between a slot and its value; a parameter of a URL may be given as both
# Fields of a line that name something, or have one of a few values.
_NAMES = {
    *("id", "op", "ts", "by", "batch", "fact", "by_fact", "other", "key", "proposal", "chat", "message", "after"),
    *("through", "day", "quotes", "supersedes", "facts", "said_at", "valid_from", "valid_to", "precision", "verified"),
    *("state", "ends"),
}


@frozen
class SecretGate:
    """Removes secrets from texts, facts and lines of the journal."""

    redactor: Redactor = field(factory=Redactor)

    def blank(self, content: str) -> str:
        """Return a text of the same length: sentences with a secret are spaces, in the others it is filled."""
        filled = self.redactor.filled(content)
        if filled == content:
            return content
        parts, position = [], 0
        for start, end in self._dropped(content, filled):
            parts += [filled[position:start], " " * (end - start)]
            position = end
        kept = "".join([*parts, filled[position:]])
        whole = [sentence for sentence in sentences(kept) if FILLER in sentence.text]
        inside = [(match.start(), match.end()) for match in _FILLED.finditer(kept)]
        lone = [place for place in inside if not any(item.start <= place[0] < item.end for item in whole)]
        for start, end in lone:  # a secret that is no part of a sentence
            kept = kept[:start] + " " * (end - start) + kept[end:]
        return kept

    def text(self, text: str) -> str:
        """Return a text without its sentences that contain a secret, stripped; empty if nothing is left."""
        filled = self.redactor.filled(text)
        if filled == text:
            return text.strip()
        parts, position = [], 0
        for start, end in self._dropped(text, filled):
            parts.append(filled[position:start])
            position = end + (len(filled[end:]) - len(filled[end:].lstrip(" \t")))
        left = _EMPTY_ITEM.sub("", "".join([*parts, filled[position:]]))
        return unfilled(left).strip() if any(map(str.isalnum, left)) else ""

    def _dropped(self, text: str, filled: str) -> Iterator[tuple[int, int]]:
        """Yield the ranges of the sentences that contain a secret and do not say where it is kept."""
        for sentence in sentences(filled):
            start, end = sentence.start, sentence.end
            if filled[start:end] != text[start:end] and not _KEPT.search(sentence.text):
                yield start, end

    def has_secret(self, value: object) -> bool:
        """Return whether a string, or a string in a list or an object, contains a secret."""
        return any(self.redactor.text(text) != text for text in _strings(value))

    def fact(self, fact: Fact) -> Fact:
        """Return a fact without secrets. Raise RecordError if nothing is left of its text, or its value is a secret."""
        text = self.text(fact.text) if self.has_secret(fact.text) else fact.text
        names = [
            fact.value,
            fact.id,
            fact.slot,
            fact.category,
            fact.made_by,
            fact.batch,
            *fact.supersedes,
            fact.ended_by,
        ]
        is_secret = self._is_secret(fact.slot, fact.value) or self.completes(fact.subject, fact.text)
        if not text or is_secret or self.has_secret([name for name in names if name]):
            raise secret_refused()
        strike = self.redactor.text
        return evolve(
            fact,
            text=text,
            subject=strike(fact.subject),
            source=strike(fact.source),
            tags=self.redactor.value(tuple(fact.tags)),
            metadata=self.redactor.metadata(fact.metadata),
            end_reason=strike(fact.end_reason),
        )

    def lines(self, records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return lines to write, without secrets.

        Those of facts of which nothing is left are dropped, and so are those with a secret in a name, such as an id.
        """
        given = list(records)
        if not self._may_have_secret(given, names=True):
            return given
        cleaned = (self._line(record) for record in given if not self.has_secret(_named(record)))
        return [line for line in cleaned if line.get("op") != "assert" or line["text"]]

    def read(self, records: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        """Return lines that were read, by id, without secrets, which an older version may have written.

        A fact of which nothing is left is archived, so that only the commands that show every fact name it.
        """
        if not self._may_have_secret(records.values()):
            return records
        return {name: self._archived(self._line(record)) for name, record in records.items()}

    @staticmethod
    def _archived(line: Mapping[str, Any]) -> Mapping[str, Any]:
        is_empty = line.get("op") == "assert" and not line["text"]
        return {**line, "text": REDACTED, "archived": True} if is_empty else line

    def _may_have_secret(self, records: Collection[Mapping[str, Any]], *, names: bool = False) -> bool:
        """Return whether a line has a secret: all lines together, because one search takes less time than many."""
        texts = [
            text
            for record in records
            for name, value in record.items()
            if names or name not in _NAMES
            for text in ((value,) if isinstance(value, str) else _strings(value))
        ]
        slots = [(each["slot"], each["value"]) for record in records for each in _slots(record)]
        texts += [f"{slot}{sign}{value}" for slot, value in slots for sign in _SIGNS]
        texts += [said for record in records for fields in _parts(record) for said in _said(fields)]
        tags = [fields["tags"] for record in records for fields in _parts(record) if fields.get("tags")]
        return self.has_secret("\n\n\n".join(texts)) or any(self.redactor.value(each) != each for each in tags)

    def _line(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        if not self._may_have_secret([record]):
            return record
        cleaned = {name: value if name in _NAMES else self.redactor.value(value) for name, value in record.items()}
        op = record.get("op")
        if op == "assert":
            is_secret = self.completes(record.get("subject", ""), record["text"])
            text = "" if is_secret else self.text(record["text"])
            return self._without_value({**cleaned, "text": text}, record)
        if op == "edit":
            changes = self._without_value(cleaned["changes"], record["changes"])
            given = record["changes"]
            is_secret = "text" not in changes or self.completes(given.get("subject", ""), given["text"])
            text = "" if is_secret else self.text(given["text"])
            return {**cleaned, "changes": {**changes, "text": text} if text else _without(changes, "text")}
        if op == "digest":
            return {**cleaned, "lines": [text for line in record.get("lines", ()) if (text := self.text(line))]}
        if op == "profile":
            pairs = zip(record.get("facts", ()), map(self.text, record.get("lines", ())), strict=False)
            kept = [(name, line) for name, line in pairs if line]
            return {**cleaned, "facts": [name for name, _ in kept], "lines": [line for _, line in kept]}
        return cleaned

    def completes(self, subject: str, text: str) -> bool:
        """Return whether a text without a secret has one beside its subject: "wifi password", "is hunter2"."""
        fields = {"subject": self.redactor.text(subject), "text": self.redactor.text(text)}
        return any(self.has_secret(said) for said in _said(fields))

    def _is_secret(self, slot: str | None, value: str | None) -> bool:
        """Return whether the value of a slot is a secret, by itself or because of the name of the slot."""
        return bool(slot and value) and any(self.has_secret(f"{slot}{sign}{value}") for sign in _SIGNS)

    def _without_value(self, cleaned: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return fields of a fact without its slot if the slot's value is a secret."""
        is_secret = cleaned.get("value") != given.get("value") or self._is_secret(given.get("slot"), given.get("value"))
        return _without(cleaned, "slot", "value") if is_secret else cleaned


def unfilled(text: str) -> str:
    """Return a text in which the filled places of secrets are ``[redacted]``."""
    return _FILLED.sub(REDACTED, text)


def secret_refused() -> RecordError:
    """Return the error for a fact that says nothing without its secret."""
    hint = "say where it is kept: 'the token is in 1Password'"
    return RecordError("the fact is a secret, and secrets are not stored as facts", hint=hint)


def _named(record: Mapping[str, Any]) -> list[Any]:
    """Return the fields by which lines refer to each other, and the keys of metadata."""
    metadata = record.get("metadata")
    keys = list(metadata) if isinstance(metadata, Mapping) else []
    return [*(value for name, value in record.items() if name in _NAMES), *keys]


def _slots(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the fields of a line, and those that it changes, if they have a slot with a value."""
    for fields in _parts(record):
        if fields.get("slot") and fields.get("value"):
            yield fields


def _parts(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the fields of a line, and those that it changes."""
    return [fields for fields in (record, record.get("changes")) if isinstance(fields, Mapping)]


def _said(fields: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a fact says with its subject. A single word is a value, and other texts are the rest of a sentence."""
    subject, text = fields.get("subject"), fields.get("text")
    if subject and text:
        yield f"{subject} {text}" if len(text.split()) > 1 else f"{subject}: {text}"


def _without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (f"{key}: {text}" for text in _strings(item))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
