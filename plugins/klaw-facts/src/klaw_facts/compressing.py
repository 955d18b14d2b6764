"""Compression: digests of days, merges of facts, the profile, and archiving of faded facts.

Without a model, a digest is a list of quotes in the journal, so it contains only what was said. A model may write
digests, merges and the profile; lines that contain more than the messages are rejected. Compression removes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define, field, frozen

from klaw_core import LanguageModelError, operations
from klaw_facts.asking import Asker, UnusableAnswerError, Usage
from klaw_facts.decay import kept_score
from klaw_facts.extracting.candidates import SourceMessage
from klaw_facts.extracting.extraction import Extraction
from klaw_facts.extracting.rules import score
from klaw_facts.extracting.sentences import sentences
from klaw_facts.index import path_of
from klaw_facts.journal import FactsJournal
from klaw_facts.model_compressor import Merge, ModelCompressor
from klaw_facts.options import FactsOptions
from klaw_facts.profile import profile_facts, profile_line, profile_lines, within
from klaw_facts.recalls import Recalled
from klaw_facts.records import batch_record, digest_record, fact_record, operation
from klaw_facts.runs import undone_days, undone_facts, undone_profiles
from klaw_facts.secret_gate import unfilled
from klaw_facts.values import Batch, Digest, Fact, Quote, make_id
from klaw_journals import BadLine, Chat, format_ts
from klaw_journals.trust import lowest
from klaw_tools.frames import one_line

if TYPE_CHECKING:
    from klaw_conversations import Conversations

_MAX_SENTENCES = 12
_FADED = 0.001
_FADING = frozenset({"temp", "debug"})
#: Facts of one subject and category are merged if there are more than this.
_MAX_UNMERGED = 12
#: Facts per call of a model.
_MAX_FACTS_PER_CALL = 40

Answer = TypeVar("Answer")


@frozen
class CompressionReport:
    """Counts of a run: digests, archived and merged facts, lines of the profile, and calls of the model.

    ``problem`` says why a model did not finish; the next run continues.
    """

    days: int = 0
    archived: int = 0
    merged: int = 0
    profile: int = 0
    profile_changed: bool = False
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    refused: int = 0
    problem: str = ""


@operations
@define(eq=False)
class Compression:
    """Writes digests, merges, the profile and archives as lines of the journal. Running it again adds nothing."""

    conversations: Conversations
    journal: FactsJournal
    options: FactsOptions
    extraction: Extraction
    changed: Callable[[Sequence[str]], object]
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    recalled: Callable[[], Mapping[str, Recalled]] = dict

    def run(
        self, *, daily: bool = True, weekly: bool = True, dry_run: bool = False, run: str = ""
    ) -> CompressionReport:
        """Digest every day before today that has no digest; archive and merge facts, and update the profile.

        A model's output is stored day by day; days without an answer wait for the next run. ``dry_run`` calls no model:
        the report counts what rules would do. Raise LanguageModelError if the options need a model and there is none.
        """
        run = run or make_id("r", format_ts(self.now()))
        step = _Step(self, None if dry_run else self._compressor(), run, dry_run=dry_run)
        days = archived = merged = 0
        if daily:
            for digest in self._digests(step):
                step.keep({**digest_record(digest, self.now()), "batch": step.run})
                days += 1
        lines: list[tuple[str, str]] = []
        is_new = False
        if weekly:
            faded = self._faded()
            archived = len(faded)
            told: dict[str, Any] = {"by": "rules", "reason": "faded", "batch": step.run}
            step.keep(*(operation("archive", self.now(), fact=fact.id, **told) for fact in faded))
            merged = sum(self._merge(step))
            lines, basis = self._profile(step)
            ids, texts = [name for name, _ in lines], [text for _, text in lines]
            is_new = tuple(lines) != self.journal.state().profile and (ids, texts) not in undone_profiles(self.journal)
            if not is_new:  # as it is, or as it was undone
                lines = list(self.journal.state().profile)
            else:
                told = {"by": step.maker, "basis": basis, "batch": step.run}
                step.keep(operation("profile", self.now(), facts=ids, lines=texts, **told))
        step.write()
        used = step.used
        return CompressionReport(
            days,
            archived,
            merged,
            len(lines),
            is_new,
            used.calls,
            used.tokens_in,
            used.tokens_out,
            used.refused,
            step.problem,
        )

    def lines(self, digest: Digest) -> list[str]:
        """Return the lines of a digest: its text, or the present text of its quotes."""
        if digest.lines:
            return list(digest.lines)
        chat = Chat.parse(digest.chat)
        messages = {item.id: item for item in self._messages(chat, date.fromisoformat(digest.day))}
        return [
            _said(messages[quote.message], quote.start, quote.end)
            for quote in digest.quotes
            if quote.message in messages
        ]

    def _compressor(self) -> ModelCompressor | None:
        if self.options.compressor != "model":
            return None
        return ModelCompressor(Asker(self.extraction.language_model()), self.options.window_tokens)

    def _digests(self, step: _Step) -> Iterator[Digest]:
        known = set(self.journal.state().digests) | undone_days(self.journal)
        today = self.now().date()
        for file in self.conversations.journal.files().files:
            key = (file.chat.name, file.day.isoformat())
            if file.day >= today or key in known:
                continue
            messages = list(self._messages(file.chat, file.day))
            said = [item for item in messages if self.extraction.is_source(item)]
            if not said:
                continue
            bullets = step.ask(partial(ModelCompressor.digest, messages=said))
            if step.problem:
                return  # the remaining days wait for the next run
            if bullets:
                quotes = tuple(dict.fromkeys(quote for bullet in bullets for quote in bullet.quotes))
                lines = [
                    line
                    for bullet in bullets
                    for line in ([bullet.text] if bullet.text else map(_best_sentence, bullet.messages))
                ]
                name = make_id("d", *key, *lines)
                yield Digest(name, *key, quotes, tuple(dict.fromkeys(lines)), step.maker)
            elif places := best_sentences(said, self.options.roles):
                name = make_id("d", *key, *(quote.record() for quote in places))
                yield Digest(name, *key, tuple(places))

    def _messages(self, chat: Chat, day: date) -> Iterator[SourceMessage]:
        for file in self.conversations.journal.files(chat).files:
            if file.day == day:
                for line in self.conversations.journal.read_day(file):
                    if not isinstance(line, BadLine) and line.message.type is None:
                        yield self.extraction.read_message(chat, line.message)

    def _faded(self) -> list[Fact]:
        now, recalled, restored = self.now(), self.recalled(), undone_facts(self.journal)
        return [
            fact
            for fact in self.journal.state().visible(now).values()
            if fact.category in _FADING
            and not fact.is_by_person
            and not fact.is_pinned
            and fact.id not in restored
            and kept_score(fact, self.options, now, recalled.get(path_of(fact.id))) <= _FADED
        ]

    def _merge(self, step: _Step) -> Iterator[int]:
        """Merge facts of subjects and categories with many facts; yield the number of facts of each merge."""
        if step.model is None:
            return
        for facts in self._crowds():
            merges = step.ask(partial(ModelCompressor.merge, facts=facts))
            if step.problem:
                return
            for merge in merges or ():
                suppressed = self.journal.state().suppressed
                if self.extraction.is_suppressed(suppressed, merge.facts[0].subject, merge.text):
                    continue
                step.keep(*({**line, "run": step.run} for line in merge_operations(merge, step.maker, self.now())))
                yield len(merge.facts)

    def _crowds(self) -> Iterator[list[Fact]]:
        """Yield the facts of each subject, category and project with many facts, oldest first.

        Facts by a person, facts with a slot, pinned facts, and facts whose merge was undone are not merged.
        """
        operations = self.journal.operations()
        undone = {line["batch"] for line in operations if line["op"] == "undo"}
        apart = {name for line in operations if line.get("batch") in undone for name in line.get("supersedes", ())}
        crowds: dict[tuple[str, str, str, str], list[Fact]] = {}
        for fact in self.journal.state().visible(self.now()).values():
            is_fixed = fact.is_by_person or fact.is_pinned or fact.slot or fact.id in apart
            if fact.is_trusted and not is_fixed:
                project = str(fact.metadata.get("project", ""))
                crowds.setdefault((fact.identity, fact.subject, fact.category, project), []).append(fact)
        for key in sorted(crowds):
            facts = sorted(crowds[key], key=lambda fact: (fact.created_at or datetime.min.replace(tzinfo=UTC), fact.id))
            if len(facts) > _MAX_UNMERGED:
                yield facts[:_MAX_FACTS_PER_CALL]

    def _profile(self, step: _Step) -> tuple[list[tuple[str, str]], str | None]:
        """Return the lines of the profile, and a key for the facts that a model chose from.

        A model selects and words facts that no rule includes. It is called again only if these facts have changed, so
        that prompts change only with their content.
        """
        state, now = self.journal.state(), self.now()
        if step.model is None:
            return profile_lines(state, self.options, now), None
        fixed, free = profile_facts(state, self.options, now)
        basis = make_id("p", *(f"{fact.id} {fact.text}" for fact in [*fixed, *free]))
        if basis == state.profile_basis:
            return list(state.profile), basis
        chosen = step.ask(partial(ModelCompressor.profile, facts=free[:_MAX_FACTS_PER_CALL])) if free else []
        if step.problem:
            return list(state.profile), state.profile_basis or None
        if chosen is None:  # the answer was unusable
            return profile_lines(state, self.options, now), basis
        return within([*((fact, profile_line(fact)) for fact in fixed), *chosen], self.options), basis


@define(eq=False)
class _Step:
    """One run: its model, its id, its usage, and why it stopped calling the model.

    The operations of rules are written at the end, those of a model after each call, because calls cost money.
    """

    compression: Compression
    model: ModelCompressor | None
    run: str
    dry_run: bool = field(kw_only=True)
    problem: str = field(default="", init=False)
    _waiting: list[dict[str, Any]] = field(factory=list, init=False)
    _written: Usage = field(factory=Usage, init=False)

    @property
    def maker(self) -> str:
        """The value of ``made_by`` for the run's operations."""
        return "rules" if self.model is None else self.model.asker.name

    @property
    def used(self) -> Usage:
        """The run's usage of the model."""
        return Usage() if self.model is None else self.model.asker.usage

    def ask(self, question: Callable[[ModelCompressor], Answer]) -> Answer | None:
        """Return the model's answer; None if there is no model, the answer is unusable, or a problem has occurred."""
        if self.model is None or self.problem:
            return None
        try:
            return question(self.model)
        except UnusableAnswerError:
            self.model.asker.refuse()
        except LanguageModelError as error:
            self.problem = str(error)
        return None

    def keep(self, *operations: dict[str, Any]) -> None:
        """Store operations: at the end of the run, or now if they come from a call of the model."""
        self._waiting += operations
        if self.model is not None:
            self.write()

    def write(self) -> None:
        """Append the collected operations, and the usage."""
        journal = self.compression.journal
        now = self.compression.now()
        lines, self._waiting = self._waiting, []
        if self.dry_run:
            return
        used = self.used - self._written
        if used.calls:
            name = make_id("b", "compress", format_ts(now), *(line["id"] for line in lines))
            counts = (0, 0, used.refused, used.tokens_in, used.tokens_out, used.calls)
            lines.append(batch_record(Batch(name, "", "", "", self.maker, "done", *counts), now))
            self._written = self.used
        with journal.turn():
            known = journal.state().digests  # another process may have written one in the meantime
            lines = [line for line in lines if line["op"] != "digest" or (line["chat"], line["day"]) not in known]
            journal.append(lines)
        ids = [line["id"] if line["op"] == "assert" else line.get("fact") for line in lines]
        self.compression.changed([name for name in ids if name])


def merge_operations(merge: Merge, made_by: str, now: datetime) -> list[dict[str, Any]]:
    """Return the operations that replace several facts by one and archive them; `undo` reverses them together."""
    first = merge.facts[0]
    name = make_id("f", first.subject, first.category, merge.text, *(fact.id for fact in merge.facts))
    batch = make_id("b", name)
    fact = Fact(
        name,
        merge.text,
        subject=first.subject,
        category=first.category,
        importance=max(fact.importance for fact in merge.facts),
        tags=tuple(dict.fromkeys(tag for fact in merge.facts for tag in fact.tags)),
        quotes=tuple(dict.fromkeys(quote for fact in merge.facts for quote in fact.quotes)),
        said_at=max((fact.said_at for fact in merge.facts if fact.said_at is not None), default=None),
        metadata={"project": first.metadata["project"]} if "project" in first.metadata else {},
        verified="paraphrase",
        made_by=made_by,
        supersedes=tuple(fact.id for fact in merge.facts),
        trust=lowest(fact.trust for fact in merge.facts),
    )
    archives = (
        operation("archive", now, by=made_by, fact=fact.id, by_fact=name, reason="merged", batch=batch)
        for fact in merge.facts
    )
    return [{**fact_record(fact, now), "batch": batch}, *archives]


def best_sentences(messages: Sequence[SourceMessage], roles: Sequence[str]) -> list[Quote]:
    """Return quotes of the sentences that look most like facts, in their order."""
    scored = [
        (score(sentence.text), (number, sentence.start), message.quote(sentence.start, sentence.end))
        for number, message in enumerate(messages)
        if message.role in roles
        for sentence in sentences(message.content)
    ]
    best = sorted((item for item in scored if item[0] > 0), key=lambda item: (-item[0], item[1]))[:_MAX_SENTENCES]
    return [quote for _, _, quote in sorted(best, key=lambda item: item[1])]


def _best_sentence(message: SourceMessage) -> str:
    """Return the sentence of a message that looks most like a fact, or its first sentence."""
    best = best_sentences([message], (message.role,))[:1] or [
        message.quote(sentence.start, sentence.end) for sentence in islice(sentences(message.content), 1)
    ]
    return "".join(_said(message, quote.start, quote.end) for quote in best)


def _said(message: SourceMessage, start: int, end: int) -> str:
    return one_line(f"{message.speaker}: {unfilled(message.content[start:end])}")
