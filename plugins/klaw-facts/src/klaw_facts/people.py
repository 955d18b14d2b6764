"""People: who has said something in chats, and who of them are one person.

Only a person says that two people are one. The only exception: if a single person speaks without a name and a sender's
id, that is the owner, as soon as the facts of both meet (see :class:`klaw_facts.extracting.resolve.Resolver`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from attrs import define, evolve, field, frozen

from klaw_core import NotFoundError, RecordError, operations, quoted
from klaw_facts.extracting.candidates import person_of, sender_of
from klaw_facts.extracting.resolve import Resolver
from klaw_facts.journal import FactsJournal
from klaw_facts.keeper import FactKeeper
from klaw_facts.options import FactsOptions
from klaw_facts.values import OWNER, PERSON, Fact, make_id
from klaw_journals import BadLine, Chat, Message, format_ts
from klaw_journals.messages import speaker_of

if TYPE_CHECKING:
    from klaw_conversations import Conversations

_HINT = "klaw people list"
_SHOWN = 5  # candidates in an error


@frozen
class Person:
    """A person: the ``identities`` that count as one, where they spoke, under which names and sender's ids.

    An identity is ``CHANNEL:SENDER_ID``, ``CHAT/NAME``, or ``owner``. ``facts`` is the number of facts, without
    retracted and archived ones.
    """

    id: str
    identities: tuple[str, ...]
    chats: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    sender_ids: tuple[str, ...] = ()
    facts: int = 0


@define
class _Traces:
    """What the messages and facts of an identity tell about it."""

    chats: set[str] = field(factory=set)
    names: set[str] = field(factory=set)
    sender_ids: set[str] = field(factory=set)


@operations
@define(eq=False)
class People:
    """Lists people, and merges and splits them. ``changed`` is called with the ids of facts that may have changed."""

    journal: FactsJournal
    keeper: FactKeeper
    options: FactsOptions
    conversations: Callable[[], Conversations]
    changed: Callable[[Sequence[str]], object]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def list(self) -> Sequence[Person]:
        """Return everybody who said something, or of whom there are facts; the owner first."""
        state, traces = self.journal.state(), self._traces()
        groups: dict[str, list[str]] = {}
        for name in sorted(traces):
            groups.setdefault(state.people.get(name, name), []).append(name)
        counts: dict[str, int] = {}
        for fact in state.facts.values():
            counts[fact.who] = counts.get(fact.who, 0) + (not fact.is_hidden)
        found = [_person(name, group, traces, counts.get(name, 0)) for name, group in groups.items()]
        return sorted(found, key=lambda person: (person.id != OWNER, person.id))

    def merge(self, *names: str) -> Person:
        """Count people as one; ``klaw facts undo`` or :meth:`split` reverses it. Raise NotFoundError, RecordError.

        A name is an identity, or a name that only one person has. A value of a slot with one value at a time that one
        of them stated ends the earlier value that another one stated, as if one person had stated both.
        """
        if len(names) < 2:  # noqa: PLR2004  # one is nobody else
            raise RecordError("a merge needs two people or more", hint=_HINT)
        with self.journal.turn():
            known = self.list()
            people = list(dict.fromkeys(_identity(name, known) for name in names))
            state = self.journal.state()
            before = [state.people.get(name, name) for name in people]
            if len(set(before)) < len(names):
                raise RecordError(f"{' and '.join(names)} are one person already", hint=_HINT)
            now = self.now()
            batch = make_id("b", "merge", len(self.journal.operations()), format_ts(now), *people)
            # A person has decided, and can reverse it: no limit of ends.
            resolver = Resolver(state, evolve(self.options, max_ends=len(state.facts)), now, "rules", batch)
            resolver.join(people, PERSON, batch)
            lines = resolver.finish()
            self.journal.append(lines)
            self.changed([line["fact"] for line in lines if line["op"] == "end"])
            return self._persons(people[:1])[0]

    def split(self, name: str) -> Sequence[Person]:
        """Reverse the last merge that named a person; return those who were one. Raise NotFoundError, RecordError."""
        with self.journal.turn():
            person = _identity(name, self.list())
            lines = self.journal.operations()
            undone = {line["batch"] for line in lines if line["op"] == "undo"}
            merges = [line for line in lines if line["op"] == "merge" and line.get("batch") not in undone]
            mine = [line for line in merges if person in line["people"]]
            if not mine:
                raise RecordError(f"{name} was not merged with anybody", hint=_HINT)
            self.keeper.undo(mine[-1]["batch"])
            return self._persons(mine[-1]["people"])

    def _persons(self, identities: Sequence[str]) -> Sequence[Person]:
        known = {identity: person for person in self.list() for identity in person.identities}
        # Of somebody whose facts and messages are gone, only the name is known.
        return [known.get(name) or Person(name, (name,)) for name in identities]

    def _traces(self) -> dict[str, _Traces]:
        """Return all identities: of messages with the roles that facts are extracted from, of facts and of merges."""
        traces: dict[str, _Traces] = {}
        for chat, message in _messages(self.conversations(), self.options.roles):
            trace = traces.setdefault(person_of(chat, message.role, message.meta), _Traces())
            trace.chats.add(chat.name)
            if (speaker := speaker_of(message.role, message.meta)) != message.role:
                trace.names.add(speaker)
            if sender := sender_of(message.meta):
                trace.sender_ids.add(sender)
        state = self.journal.state()
        for fact in state.facts.values():
            _add(traces, fact)
        for name in state.people:
            traces.setdefault(name, _Traces())
        return traces


def only_unnamed(conversations: Conversations) -> str:
    """Return the only person in all chats who speaks as a user without a name and an id; empty if there are several."""
    found = ""
    for chat in conversations.journal.chats():
        person = person_of(chat, "user", {})
        messages = (message for _, message in _messages(conversations, ("user",), chat))
        if any(person_of(chat, message.role, message.meta) == person for message in messages):
            if found:
                return ""
            found = person
    return found


def _messages(
    conversations: Conversations, roles: Sequence[str], only: Chat | None = None
) -> Iterator[tuple[Chat, Message]]:
    for chat in conversations.journal.chats() if only is None else (only,):
        for line in conversations.read(chat):
            if not isinstance(line, BadLine) and line.message.type is None and line.message.role in roles:
                yield chat, line.message


def _add(traces: dict[str, _Traces], fact: Fact) -> None:
    trace = traces.setdefault(fact.identity, _Traces())
    trace.chats.update(quote.chat for quote in fact.quotes)
    if fact.subject not in {"user", "assistant", "system", "tool", ""}:
        trace.names.add(fact.subject)


def _person(name: str, group: Sequence[str], traces: dict[str, _Traces], facts: int) -> Person:
    def all_of(kind: str) -> tuple[str, ...]:
        return tuple(sorted({item for one in group for item in getattr(traces[one], kind)}))

    return Person(name, tuple(group), all_of("chats"), all_of("names"), all_of("sender_ids"), facts)


def _identity(name: str, known: Sequence[Person]) -> str:
    """Return the identity that is meant. Raise NotFoundError, RecordError."""
    if name == OWNER or any(name in person.identities for person in known):
        return name
    folded = name.casefold()
    found = [person for person in known if folded in {one.casefold() for one in person.names}]
    if not found:
        raise NotFoundError(f"there is no person {quoted(name, 80)}", hint=_HINT)
    if len(found) > 1:
        which = ", ".join(person.id for person in found[:_SHOWN])
        raise RecordError(f"{quoted(name, 80)} may be {which}: name one of them", hint=_HINT)
    return found[0].identities[0]
