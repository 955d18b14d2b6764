"""Remove facts and quotes whose messages were forgotten."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, evolve

from klaw_facts.extracting.begins import begin_of_part, told_by
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.index import FactIndex
from klaw_facts.journal import FactsJournal
from klaw_facts.pointers import Pointers
from klaw_facts.records import fact_record, operation
from klaw_facts.values import PERSON, Fact, Quote, make_id, normalised
from klaw_journals import Chat, Message

_TAKEN = frozenset({"quote", "paraphrase"})  # other facts were stated by a person or an agent


@define(eq=False)
class Dropping:
    """Removes the content of forgotten messages from the journal of facts.

    ``forget`` removes facts permanently; ``replace`` also removes lines, but does not prevent another extraction of the
    same claim. ``read`` returns a message as extractors read it, ``secret`` an id that does not reveal the one it is
    derived from. ``was_forgotten`` says whether a message was forgotten on any of the machines that share the memory:
    one that is missing may only be late. None if no other machine shares it, so that a missing message was removed.
    ``index`` is None in an index run, which removes and adds what changed; while it rebuilds, nothing else may write.
    """

    journal: FactsJournal
    pointers: Pointers
    index: FactIndex | None
    forget: Callable[[Sequence[str]], object]
    replace: Callable[[Sequence[str]], object]
    read: Callable[[Chat, Message], SourceMessage]
    secret: Callable[[str], str]
    was_forgotten: Callable[[str, str], bool] | None = None

    def run(self, *, is_told: bool, removed: Collection[str] = ()) -> None:
        """Forget facts whose quoted messages are all removed; delete quotes of removed messages from other facts.

        If the text of such a fact came from a removed message, one of its other quotes becomes its text. ``is_told``:
        something was forgotten just now. Otherwise a message that may be in a damaged line counts as existing.
        ``removed`` are removed messages, as chat and id: another message of the chat may have the id now.
        """
        state = self.journal.state()
        operations = self.journal.operations()
        chats = quoted_chats(operations)
        there = self._there(operations, removed)
        read = {chat for chat in chats if self.pointers.is_readable(chat, whole=not is_told)}

        def is_gone(chat: str, message: str) -> bool:
            if message in there[chat]:
                return False
            is_known = self.was_forgotten is None or self.was_forgotten(chat, message)
            return (chat in read and is_known) or f"{chat}/{message}" in removed

        asserted = {line["id"]: line for line in operations if line["op"] == "assert"}
        # An undone operation is not a fact any more, but its text is still in the journal.
        gone = [
            name
            for name, line in asserted.items()
            if name not in state.facts and any(is_gone(quote["chat"], quote["message"]) for quote in _quotes(line))
        ]
        replaced: list[str] = []
        lines: list[dict[str, Any]] = []
        now = datetime.now(UTC)
        for fact in state.facts.values():
            missing = [quote for quote in fact.quotes if is_gone(quote.chat, quote.message)]
            if not missing:
                continue
            kept = [quote for quote in fact.quotes if quote.message in there[quote.chat]]
            if len(missing) + len(kept) < len(fact.quotes):
                continue  # later, when the other messages can be read
            if not kept and fact.verified in _TAKEN:
                gone.append(fact.id)
            elif self._says_what_is_gone(fact, asserted[fact.id], kept, there):
                lines += self._instead(fact, kept, there, now)
                replaced.append(fact.id)
            else:
                places = dict.fromkeys((quote.chat, quote.message) for quote in missing)
                lines += [
                    operation("unquote", now, by="rules", fact=fact.id, chat=chat, message=name)
                    for chat, name in places
                ]
        digests = [
            line["id"]
            for line in operations
            if line["op"] == "digest" and any(is_gone(quote["chat"], quote["message"]) for quote in _quotes(line))
        ]
        self.journal.append(lines)
        self.journal.forget(digests)
        self._remove(gone, replaced, [line["id"] for line in lines if line["op"] == "assert"])

    def _remove(self, gone: Sequence[str], replaced: Sequence[str], instead: Sequence[str]) -> None:
        failure = None if self.index is None else self.index.remove([*gone, *replaced])
        if gone:
            self.forget(gone)
        if replaced:
            self.replace(replaced)
        if instead and self.index is not None:
            self.index.put(instead)
        if failure is not None:
            raise failure

    def _there(
        self, operations: Sequence[Mapping[str, Any]], removed: Collection[str]
    ) -> dict[str, dict[str, Message]]:
        """Return the messages of the quoted chats by id, without the removed ones."""
        names: dict[str, set[str]] = {}
        for line in operations:
            for quote in _quotes(line):
                names.setdefault(quote["chat"], set()).add(quote["message"])
        found = {chat: self.pointers.messages(chat, own) for chat, own in names.items()}
        return {
            chat: {name: message for name, message in messages.items() if f"{chat}/{name}" not in removed}
            for chat, messages in found.items()
        }

    def _says_what_is_gone(
        self,
        fact: Fact,
        record: Mapping[str, Any],
        kept: Sequence[Quote],
        there: Mapping[str, Mapping[str, Message]],
    ) -> bool:
        """Return whether a line of a fact contains text of a removed message that is in no other message."""
        if (
            record.get("verified") not in _TAKEN or fact.supersedes
        ):  # a merge is removed with the facts that it replaces
            return False
        if all(quote["message"] in there[quote["chat"]] for quote in _quotes(record)):
            return False
        text = normalised(record["text"])
        return all(normalised(self._said(quote, there)) != text for quote in kept)

    def _instead(
        self, fact: Fact, kept: Sequence[Quote], there: Mapping[str, Mapping[str, Message]], now: datetime
    ) -> list[dict[str, Any]]:
        """Return the lines of the replacement for a fact: a person's text, or the text of a quote."""
        if fact.retracted_at is not None:
            return []
        other = evolve(fact, id=make_id("f", self.secret(fact.id)), quotes=tuple(kept), batch=None)
        if fact.verified != PERSON:
            place = (kept[0].start, kept[0].end)
            message = self.read(Chat.parse(kept[0].chat), there[kept[0].chat][kept[0].message])
            text = message.content[slice(*place)]
            if not text.strip():
                return []
            begin, stated = begin_of_part(message, place, text)
            other = evolve(
                other,
                text=text,
                **told_by(text, stated),
                valid_from=begin.valid_from,
                precision=begin.precision,
                affirmed_at=begin.affirmed_at,
                source=kept[0].chat,
                said_at=message.said_at,
                verified="quote",
            )
        lines = [fact_record(other, now)]
        merges = (item.supersedes for item in self.journal.state().facts.values())
        if fact.is_archived and not any(fact.id in parts for parts in merges):
            lines.append(operation("archive", now, by="rules", fact=other.id))
        return lines

    def _said(self, quote: Quote, there: Mapping[str, Mapping[str, Message]]) -> str:
        message = self.read(Chat.parse(quote.chat), there[quote.chat][quote.message])
        return message.content[quote.start : quote.end]


def quoted_chats(operations: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the chats that lines of the journal quote, including undone lines."""
    return {quote["chat"] for line in operations for quote in _quotes(line)}


def _quotes(line: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    quotes: Sequence[Mapping[str, Any]] = (
        line.get("quotes", ()) if line["op"] in {"assert", "confirm", "digest"} else ()
    )
    return quotes
