"""What facts lose when messages are forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, evolve

from klaw_core import Chat, Message
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.slots import slot_of
from klaw_facts.index import FactIndex
from klaw_facts.journal import FactsJournal
from klaw_facts.pointers import Pointers
from klaw_facts.records import fact_record, operation
from klaw_facts.values import PERSON, Fact, Quote, make_id, normalised

_TAKEN = frozenset({"quote", "paraphrase"})  # others were stated by somebody


@define(eq=False)
class Dropping:
    """Takes what messages said that are gone out of the journal of facts.

    ``forget`` removes facts for good, ``replace`` does without keeping what they said from coming back. ``read``
    returns a message as extractors read it, ``secret`` an id that tells nothing of the one that it is made of.
    """

    journal: FactsJournal
    pointers: Pointers
    index: FactIndex
    forget: Callable[[Sequence[str]], None]
    replace: Callable[[Sequence[str]], None]
    read: Callable[[Chat, Message], SourceMessage]
    secret: Callable[[str], str]

    def run(self, *, is_told: bool) -> None:
        """Forget the facts of which every quote is of a message that is gone; take such quotes from the others.

        A fact that others of its quotes support says what these say, where its text was that of a message that is gone.
        ``is_told``: something was forgotten just now. Else a message that may stand in a damaged line is not gone.
        """
        state = self.journal.state()
        operations = self.journal.operations()
        chats = quoted_chats(operations)
        there = {chat: self.pointers.messages(chat) for chat in chats}
        read = {chat for chat in chats if self.pointers.is_readable(chat, whole=not is_told)}

        def is_gone(chat: str, message: str) -> bool:
            return chat in read and message not in there[chat]

        asserted = {line["id"]: line for line in operations if line["op"] == "assert"}
        # What was undone is no fact any more, but its text is still in the journal.
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
                continue  # once the others can be read
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
        if gone:
            self.index.remove(gone)
            self.forget(gone)
        if replaced:
            self.index.remove(replaced)
            self.replace(replaced)
            self.index.put([line["id"] for line in lines if line["op"] == "assert"])

    def _says_what_is_gone(
        self,
        fact: Fact,
        record: Mapping[str, Any],
        kept: Sequence[Quote],
        there: Mapping[str, Mapping[str, Message]],
    ) -> bool:
        """Return whether a line of a fact has words of a message that is gone, and that no other message says."""
        if record.get("verified") not in _TAKEN or fact.supersedes:  # a merge goes with the facts that it stands for
            return False
        if all(quote["message"] in there[quote["chat"]] for quote in _quotes(record)):
            return False
        text = normalised(record["text"])
        return all(normalised(self._said(quote, there)) != text for quote in kept)

    def _instead(
        self, fact: Fact, kept: Sequence[Quote], there: Mapping[str, Mapping[str, Message]], now: datetime
    ) -> list[dict[str, Any]]:
        """Return the lines of the fact that takes the place of one: what a person wrote, or what a quote says."""
        if fact.retracted_at is not None:
            return []
        other = evolve(fact, id=make_id("f", self.secret(fact.id)), quotes=tuple(kept), batch=None)
        if fact.verified != PERSON:
            text = self._said(kept[0], there)
            if not text.strip():
                return []
            slot, value = slot_of(text) or (None, None)
            message = there[kept[0].chat][kept[0].message]
            other = evolve(
                other,
                text=text,
                slot=slot,
                value=value,
                metadata={},
                source=kept[0].chat,
                said_at=message.ts,
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
    """Return the chats that lines of the journal quote, also those of what was undone."""
    return {quote["chat"] for line in operations for quote in _quotes(line)}


def _quotes(line: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    quotes: Sequence[Mapping[str, Any]] = (
        line.get("quotes", ()) if line["op"] in {"assert", "confirm", "digest"} else ()
    )
    return quotes
