"""Compression without a model: digests of days, the profile, and archives of what has faded.

A digest is a list of places in the journal, so nothing in it was never said. Nothing is removed by any of this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any

from attrs import define, frozen

from klaw_core import Chat, Conversations, JournalEntry, estimate_tokens
from klaw_facts.decay import score as fact_score
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import Extraction
from klaw_facts.extracting.rules import score
from klaw_facts.extracting.sentences import sentences
from klaw_facts.fold import State
from klaw_facts.journal import FactsJournal
from klaw_facts.options import FactsOptions
from klaw_facts.records import digest_record, operation
from klaw_facts.values import Digest, Fact, Quote, make_id

_MOST_SENTENCES = 12
_FADED = 0.001
_FADING = frozenset({"temp", "debug"})


@frozen
class CompressionReport:
    """What a run did: days that got a digest, facts that were archived, lines of the profile."""

    days: int = 0
    archived: int = 0
    profile: int = 0
    profile_changed: bool = False


@define(eq=False)
class Compression:
    """Makes digests, the profile and archives. Every step is a line of the journal; running it again adds nothing."""

    conversations: Conversations
    journal: FactsJournal
    options: FactsOptions
    extraction: Extraction
    changed: Callable[[Sequence[str]], tuple[str, ...]]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self, *, daily: bool = True, weekly: bool = True, dry_run: bool = False) -> CompressionReport:
        """Digest every day before today that has no digest; archive what has faded and renew the profile."""
        days = list(self._digests()) if daily else []
        archived = self._faded() if weekly else []
        lines = profile_lines(self.journal.state(), self.options, self.now()) if weekly else []
        before = self.journal.state().profile
        is_new = weekly and tuple(lines) != before
        if not dry_run:
            with self.journal.turn():
                now = self.now()
                operations: list[dict[str, Any]] = [digest_record(digest, now) for digest in days]
                operations += [operation("archive", now, by="rules", fact=fact.id, reason="faded") for fact in archived]
                if is_new:
                    ids, texts = [name for name, _ in lines], [text for _, text in lines]
                    operations.append(operation("profile", now, by="rules", facts=ids, lines=texts))
                self.journal.append(operations)
            self.changed([fact.id for fact in archived])
        return CompressionReport(len(days), len(archived), len(lines), is_new)

    def lines(self, digest: Digest) -> list[str]:
        """Return what a digest says: its text, or what stands at its places now."""
        if digest.lines:
            return list(digest.lines)
        chat = Chat.parse(digest.chat)
        messages = {item.id: item for item in self._messages(chat, date.fromisoformat(digest.day))}
        return [
            f"{messages[quote.message].speaker}: {messages[quote.message].content[quote.start : quote.end]}"
            for quote in digest.quotes
            if quote.message in messages
        ]

    def _digests(self) -> Iterator[Digest]:
        known = self.journal.state().digests
        today = self.now().date()
        for file in self.conversations.journal.files().files:
            key = (file.chat.name, file.day.isoformat())
            if file.day >= today or key in known:
                continue
            quotes = best_sentences(list(self._messages(file.chat, file.day)), self.options.roles)
            if quotes:
                name = make_id("d", *key, *(quote.record() for quote in quotes))
                yield Digest(name, *key, tuple(quotes))

    def _messages(self, chat: Chat, day: date) -> Iterator[SourceMessage]:
        for file in self.conversations.journal.files(chat).files:
            if file.day == day:
                for line in self.conversations.journal.read_file(file):
                    if isinstance(line, JournalEntry) and line.message.type is None:
                        yield self.extraction.read_message(chat, line.message)

    def _faded(self) -> list[Fact]:
        now = self.now()
        return [
            fact
            for fact in self.journal.state().visible(now).values()
            if fact.category in _FADING
            and not fact.is_by_person
            and not fact.is_pinned
            and fact_score(fact, self.options, now) <= _FADED
        ]


def best_sentences(messages: Sequence[SourceMessage], roles: Sequence[str]) -> list[Quote]:
    """Return the places of the sentences that look most like facts, in their order."""
    scored = [
        (score(sentence.text), (number, sentence.start), message.quote(sentence.start, sentence.end))
        for number, message in enumerate(messages)
        if message.role in roles
        for sentence in sentences(message.content)
    ]
    best = sorted((item for item in scored if item[0] > 0), key=lambda item: (-item[0], item[1]))[:_MOST_SENTENCES]
    return [quote for _, _, quote in sorted(best, key=lambda item: item[1])]


def profile_lines(state: State, options: FactsOptions, now: datetime) -> list[tuple[str, str]]:
    """Return the profile: facts of slots, then pinned ones, then lasting ones by weight, up to its tokens.

    Of sentences that rules took only instructions are in it: the others say little for what they cost in each prompt.

    Lines stand in an order that does not depend on time, so that the profile's bytes change only with its content.
    """
    lasting = {"identity", "rule", "relationship", "preference"}
    facts = [fact for fact in state.visible(now).values() if fact.is_trusted]

    def rank(fact: Fact) -> tuple[int, float, str]:
        group = 0 if options.is_single(fact.slot) else 1 if fact.is_pinned else 2
        return group, -fact.importance, fact.id

    wanted = [
        fact
        for fact in facts
        if options.is_single(fact.slot)
        or fact.is_pinned
        or fact.category in ({"rule"} if fact.is_bare_quotation else lasting)
    ]
    chosen: list[tuple[Fact, str]] = []
    used = 0
    seen: set[tuple[str, str]] = set()
    for fact in sorted(wanted, key=rank):
        if fact.slot and (fact.subject, fact.slot) in seen:
            continue
        who = "" if fact.subject == "user" else f"{fact.subject}: "
        line = f"{who}{fact.slot}: {fact.value}" if fact.slot and fact.value else f"{who}{fact.text}"
        tokens = estimate_tokens([line])[0]
        if used + tokens > options.profile_tokens:
            break
        used += tokens
        chosen.append((fact, " ".join(line.split())))
        if fact.slot:
            seen.add((fact.subject, fact.slot))
    return [(fact.id, line) for fact, line in sorted(chosen, key=lambda item: (item[0].slot or "~", item[0].id))]
