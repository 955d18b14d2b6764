"""Extraction: read the unread messages of each chat, and append facts in atomic batches.

There is no queue: a batch says up to which messages it has read, and is appended together with its facts. So no failure
or crash loses a message or reads one twice.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from klaw_core import LanguageModel, LanguageModelError, estimate_tokens, operations
from klaw_facts.asking import Asker, UnusableAnswerError, Usage
from klaw_facts.extracting import rule_extractor
from klaw_facts.extracting.begins import begin_of_part, date_told, told_by
from klaw_facts.extracting.candidates import Candidate, SourceMessage, blanked, person_of, project_of
from klaw_facts.extracting.framing import EARLIER, doubtful, taken_back
from klaw_facts.extracting.model_extractor import ModelExtractor
from klaw_facts.extracting.resolve import Resolver, nominees
from klaw_facts.extracting.rules import category_of, importance_of
from klaw_facts.extracting.slots import statements
from klaw_facts.extracting.verify import verify
from klaw_facts.journal import FactsJournal
from klaw_facts.options import FactsOptions
from klaw_facts.records import batch_record
from klaw_facts.secret_gate import unfilled
from klaw_facts.succession import RESOLUTION
from klaw_facts.values import Batch, Fact, Quote, make_id, normalised
from klaw_journals import BadLine, Chat, Message
from klaw_journals.messages import speaker_of
from klaw_journals.trust import FOREIGN

if TYPE_CHECKING:
    from klaw_conversations import Conversations

#: The version of the rules. With other rules, everything is read again only on request.
RULES_VERSION = "rules-1"
_MESSAGES_PER_BATCH = 200
_CONTEXT_MESSAGES = 3
_ENDS = 2  # ends per model answer


@frozen
class ExtractionReport:
    """The result of a run. ``waiting`` counts unread messages; ``problem`` is the reason if a model failed.

    ``skipped`` counts messages that the model could not read even one at a time.
    """

    facts: int = 0
    confirmed: int = 0
    refused: int = 0
    messages: int = 0
    batches: int = 0
    waiting: int = 0
    skipped: int = 0
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    problem: str = ""
    found: tuple[Fact, ...] = ()


@operations
@define(eq=False)
class Extraction:
    """Reads what is unread of chats. ``suppress_key`` is the key for hashes of forgotten facts.

    Machines that share the memory have one key; ``own_key`` is the one that this machine used before, if any. What
    another machine wrote is read there, and its facts arrive ready: ``is_arrived`` returns what says so of a line.
    """

    conversations: Conversations
    journal: FactsJournal
    options: FactsOptions
    suppress_key: Callable[[], bytes]
    get_model: Callable[[], LanguageModel | None] = lambda: None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    report: ExtractionReport = field(factory=ExtractionReport)
    only_unnamed: Callable[[], str] = str
    own_key: Callable[[], bytes] = bytes
    is_arrived: Callable[[], Callable[[str, str, Mapping[str, Any]], bool] | None] = lambda: None

    def run(self, chat: str | None = None, limit: int | None = None, *, dry_run: bool = False) -> ExtractionReport:
        """Read new messages, at most ``limit``; with ``dry_run`` append nothing. Raise StoreError."""
        self.report = ExtractionReport()
        extractor = self._extractor()
        for found in self.conversations.journal.chats():
            if chat is None or found.name == chat:
                while not self._run_chat(found, extractor, limit, dry_run=dry_run):
                    pass
        return self.report

    def waiting(self) -> int:
        """Return the number of unread messages."""
        entries = map(self._entries, self.conversations.journal.chats())
        return sum(read.count(False) for _, read in entries)

    def read_in_chat(self, chat: Chat, message: Message) -> SourceMessage:
        """Return a message as extractors read it, with what earlier messages say about it."""
        messages, _ = self._entries(chat)
        ids = [item.id for item in messages]
        place = ids.index(message.id) if message.id in ids else 0
        around = doubtful(messages[max(place - EARLIER, 0) : place + EARLIER])
        return self.read_message(chat, message, is_framed=any(around[min(place, EARLIER) :][:1]))

    def read_message(
        self, chat: Chat, message: Message, *, is_framed: bool = False, takes_back: str = ""
    ) -> SourceMessage:
        """Return a message as extractors read it."""
        content = blanked(self.journal.gate.blank(message.content), message.meta)
        speaker = speaker_of(message.role, message.meta)
        person = person_of(chat, message.role, message.meta)
        trust, is_imported = message.trust_class, message.trust == FOREIGN
        said = (chat.name, message.id, message.role, speaker, content, message.ts, person, trust, is_imported)
        return SourceMessage(*said, self.journal.gate.redactor.text(project_of(message.meta)), is_framed, takes_back)

    def suppression(self, subject: str, text: str) -> str:
        """Return the keyed hash of a claim, which identifies a forgotten claim without revealing it."""
        return _keyed(self.suppress_key(), _claim(subject, text))

    def place_suppression(self, quote: Quote) -> str:
        """Return the keyed hash of a place."""
        return _keyed(self.suppress_key(), _place(quote))

    def is_suppressed(
        self, suppressed: AbstractSet[str], subject: str, text: str, quotes: Iterable[Quote] = ()
    ) -> bool:
        """Return whether a claim, or the place of one of its quotes, is among these hashes of forgotten facts."""
        told = [_claim(subject, text), *map(_place, quotes)]
        keys = dict.fromkeys((self.suppress_key(), self.own_key()))
        return any(_keyed(key, item) in suppressed for key in keys if key for item in told)

    def _extractor(self) -> ModelExtractor | None:
        """Return the extractor for the model; None for rules. Raise LanguageModelError if there is no model."""
        if self.options.extractor != "model":
            return None
        return ModelExtractor(Asker(self.language_model()), tuple(self.options.curves))

    def language_model(self) -> LanguageModel:
        """Return the configured language model. Raise LanguageModelError if there is none."""
        model = self.get_model()
        if model is None:
            raise LanguageModelError(
                "no language model is configured",
                hint='set [memory.language_model], or extractor and compressor = "rules"',
            )
        return model

    def _run_chat(self, chat: Chat, extractor: ModelExtractor | None, limit: int | None, *, dry_run: bool) -> bool:
        """Read what is unread of a chat; return False if another process has read some of it in the meantime."""
        after = self.journal.state().watermarks.get(chat.name, "")
        entries, read = self._entries(chat)
        for begin, end in _unread(read):
            messages = self._messages(chat, entries, begin, end)
            found = self._run_part(chat, after, messages, extractor, limit, dry_run=dry_run)
            if found is None:
                return False
            after = found
        return True

    def _messages(self, chat: Chat, entries: Sequence[Message], begin: int, end: int) -> list[SourceMessage]:
        """Return the messages of a part of a chat, with what the messages around it say about them."""
        first = max(begin - EARLIER, 0)
        around = entries[first : end + EARLIER]
        back = {place: around[other].id for place, other in taken_back(around).items()}
        return [
            self.read_message(chat, message, is_framed=is_framed, takes_back=back.get(place, ""))
            for place, (message, is_framed) in enumerate(zip(around, doubtful(around), strict=True))
            if begin <= first + place < end
        ]

    def _run_part(
        self,
        chat: Chat,
        after: str,
        messages: Sequence[SourceMessage],
        extractor: ModelExtractor | None,
        limit: int | None,
        *,
        dry_run: bool,
    ) -> str | None:
        """Read messages that follow each other, as many as the limit and the model allow.

        Return the last that was read; None if another process has read some of them in the meantime.
        """
        position = 0
        while position < len(messages) and not self.report.problem:
            left = None if limit is None else limit - self.report.messages
            window = self._window(messages[position:], extractor, left)
            if not window:
                break
            before = messages[max(position - _CONTEXT_MESSAGES, 0) : position]
            try:
                done = self._run_window(chat, after, window, before, extractor, dry_run=dry_run)
            except LanguageModelError as error:
                self.report = evolve(self.report, problem=str(error))
                break
            if not done:
                return None
            position += done
            after = messages[position - 1].id
        self.report = evolve(self.report, waiting=self.report.waiting + len(messages) - position)
        return after

    def _entries(self, chat: Chat) -> tuple[list[Message], list[bool]]:
        """Return the messages of a chat in order, and whether each was read.

        A message may arrive in the file of an earlier day: by an import, or after a clock was put right. So a batch
        names the last message that it has read of each day. One of an older version, or one of whose last messages is
        forgotten, counts as all up to its last one.
        """
        lines = self.conversations.read(chat)
        entries = [line for line in lines if not isinstance(line, BadLine) and not line.duplicate]
        if is_arrived := self.is_arrived():
            entries = [line for line in entries if not is_arrived("conversations", chat.name, line.written.record())]
        batches = [batch for batch in self.journal.state().batches.values() if batch.chat == chat.name]
        named = {name for batch in batches for name in (batch.through, *batch.ends)}
        longer = named - {line.message.id for line in entries}  # removed, or called otherwise now
        places: dict[str, int] = {}
        for index, line in enumerate(entries):
            names = filter(line.is_called, longer)
            places.update(dict.fromkeys((*names, line.message.id), index))
        days = [line.message.ts.date() for line in entries]
        last, last_of = -1, dict.fromkeys(days, -1)
        for batch in batches:
            if batch.ends and all(name in places for name in batch.ends):
                for place in map(places.__getitem__, batch.ends):
                    last_of[days[place]] = max(last_of[days[place]], place)
            else:  # if the last message of all is forgotten, that of the batch before counts
                last = max(last, places.get(batch.through, -1))
        read = [index <= max(last, last_of[day]) for index, day in enumerate(days)]
        return [*_in_turn([line.message for line in entries])], read

    def _window(
        self, messages: Sequence[SourceMessage], extractor: ModelExtractor | None, limit: int | None
    ) -> list[SourceMessage]:
        """Return the first unread messages, as many as are read together."""
        most = _MESSAGES_PER_BATCH if limit is None else min(limit, _MESSAGES_PER_BATCH)
        window = list(messages[:most])
        if extractor is None:
            return window
        sizes = estimate_tokens([message.content if self.is_source(message) else "" for message in window])
        total = 0
        for index, size in enumerate(sizes):
            total += size
            if index and total > self.options.window_tokens:
                return window[:index]
        return window

    def _run_window(
        self,
        chat: Chat,
        after: str,
        window: Sequence[SourceMessage],
        before: Sequence[SourceMessage],
        extractor: ModelExtractor | None,
        *,
        dry_run: bool,
    ) -> int:
        """Read a window, or its first half if that fails, and append the batch; return the number of messages.

        Return 0 if another process has moved the watermark from ``after`` in the meantime.
        """
        sources = [message for message in window if self.is_source(message)]
        asker = None if extractor is None else extractor.asker
        start = Usage() if asker is None else asker.usage
        error = ""
        try:
            candidates = self._candidates(sources, before, extractor)
        except UnusableAnswerError as failure:
            if len(window) > 1:
                return self._run_window(chat, after, window[: len(window) // 2], before, extractor, dry_run=dry_run)
            candidates, error = [], str(failure)
        by = RULES_VERSION if asker is None else asker.name
        batch = make_id("b", chat.name, after, window[-1].id, by)
        facts, refused = self._facts(candidates, sources)
        ends = self._relations(facts, extractor)
        used = Usage() if asker is None else asker.usage - start
        with self.journal.turn():
            if not dry_run and self.journal.state().watermarks.get(chat.name, "") != after:
                return 0  # another process has read some of them in the meantime
            resolver = Resolver(
                *(self.journal.state(), self.options, self.now(), by, batch), only_unnamed=self.only_unnamed
            )
            resolver.take_back(window)
            for fact in facts:
                resolver.add(fact)
            for old, new in ends:
                resolver.end(old, new, "model")
            line = Batch(
                batch,
                chat.name,
                after,
                window[-1].id,
                by,
                "failed" if error else "done",
                resolver.asserted,
                resolver.confirmed,
                refused + used.refused,
                used.tokens_in,
                used.tokens_out,
                used.calls,
                error,
                ends=tuple({message.said_at.date(): message.id for message in window}.values()),
            )
            if not dry_run:
                self.journal.append([*resolver.finish(), batch_record(line, self.now())])
        self._count(line, len(window), facts)
        return len(window)

    def _candidates(
        self, sources: Sequence[SourceMessage], before: Sequence[SourceMessage], extractor: ModelExtractor | None
    ) -> list[Candidate]:
        if extractor is None:
            return list(rule_extractor.extract(sources))
        if not sources:
            return []
        found = extractor.extract(sources, before)
        # Small models often answer with an empty list. If the rules find a statement, the model is asked once more.
        is_suspect = not found and next(iter(rule_extractor.extract(sources)), None) is not None
        return extractor.extract(sources, before, again=True) if is_suspect else found

    def _facts(self, candidates: Sequence[Candidate], window: Sequence[SourceMessage]) -> tuple[list[Fact], int]:
        """Return the facts from candidates, and the number of rejected candidates."""
        facts: dict[str, Fact] = {}
        suppressed = self.journal.state().suppressed
        refused = 0
        for candidate in candidates:
            fact = make_fact(candidate, window)
            if fact is None:
                refused += 1
                continue
            if suppressed and self.is_suppressed(suppressed, fact.subject, fact.text, fact.quotes):
                continue
            facts.setdefault(fact.id, fact)
        return list(facts.values()), refused

    def _relations(self, facts: Sequence[Fact], extractor: ModelExtractor | None) -> list[tuple[Fact, Fact]]:
        """Return the pairs of facts in which, according to the model, the newer fact ends the older one."""
        if extractor is None:
            return []
        current = [fact for fact in self.journal.state().facts.values() if fact.valid_to is None and not fact.is_hidden]
        placed = self.journal.state().placed
        pairs = [(old, new) for new in facts for old in nominees(placed(new), current)[:3]]
        try:
            relations = extractor.relations(pairs)
        except LanguageModelError:
            return []  # nothing is ended
        return [pairs[index] for index, relation in relations.items() if relation == _ENDS]

    def is_source(self, message: SourceMessage) -> bool:
        """Return whether facts and digests are taken from a message: from foreign ones only if that is configured."""
        is_wanted = message.role in self.options.roles and (self.options.foreign or not message.is_imported)
        return is_wanted and bool(message.content.strip())

    def _count(self, line: Batch, messages: int, facts: Sequence[Fact]) -> None:
        report = self.report
        self.report = evolve(
            report,
            facts=report.facts + line.facts,
            confirmed=report.confirmed + line.confirmed,
            refused=report.refused + line.refused,
            messages=report.messages + messages,
            batches=report.batches + 1,
            skipped=report.skipped + (messages if line.state == "failed" else 0),
            calls=report.calls + line.calls,
            tokens_in=report.tokens_in + line.tokens_in,
            tokens_out=report.tokens_out + line.tokens_out,
            found=(*report.found, *facts),
        )


def make_fact(candidate: Candidate, window: Sequence[SourceMessage]) -> Fact | None:
    """Verify a candidate and return it as a fact; None if its quote is not in the messages.

    The subject of the fact is the speaker of the quoted message, even if the claim is about somebody else.
    """
    verified = verify(candidate, window)
    if verified is None:
        return None
    if (text := unfilled(verified.text)) != verified.text:
        verified = evolve(verified, text=text, grade="paraphrase")
    message = next(item for item in window if (item.chat, item.id) == (verified.quote.chat, verified.quote.message))
    said = message.content[verified.quote.start : verified.quote.end]
    category = candidate.category or category_of(verified.text)
    # From the message, because a model's quote may differ; of several statements, the one that is quoted.
    part = next((part for part in statements(said) if candidate.quote.strip() in part), said)
    start = verified.quote.start + said.find(part)
    begin, stated = begin_of_part(message, (start, start + len(part)), candidate.when)
    told = told_by(part, stated)
    when = date_told(candidate.when, said, message.said_at)
    metadata = {**told["metadata"], **({"when": when} if when else {})}
    metadata |= {"project": message.project} if message.project else {}
    return Fact(
        make_id("f", message.speaker, category, told["slot"], normalised(verified.text), verified.quote.record()),
        verified.text,
        subject=message.speaker,
        person=message.person,
        category=category,
        slot=told["slot"],
        value=told["value"],
        importance=importance_of(category),
        metadata=metadata,
        quotes=(verified.quote,),
        valid_from=begin.valid_from,
        precision=begin.precision,
        verified=verified.grade,
        made_by=candidate.made_by,
        source=message.chat,
        said_at=message.said_at,
        affirmed_at=begin.affirmed_at,
        trust=message.trust,
    )


def _unread(read: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each part whose messages are unread."""
    begin = 0
    for is_read, part in groupby(read):
        end = begin + len(list(part))
        if not is_read:
            yield begin, end
        begin = end


def _in_turn(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages of a chat, each with a time after those of the lines before it in the file of its day.

    Lines are in the order in which they were acknowledged; a clock that was put back does not change it.
    """
    latest = datetime.min.replace(tzinfo=UTC)
    for message in messages:
        is_late = message.ts < latest and message.ts.date() == latest.date()
        turn = evolve(message, ts=latest + RESOLUTION) if is_late else message
        latest = turn.ts
        yield turn


def _claim(subject: str, text: str) -> str:
    return f"{subject}\0{normalised(text)}"


def _place(quote: Quote) -> str:
    return f"{quote.chat}\0{quote.message}\0{quote.start}\0{quote.end}"


def _keyed(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), sha256).hexdigest()
