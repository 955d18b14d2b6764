"""Context for a model's prompt: items of extensions and the best chunks, packed within a token budget.

Packing is deterministic. Items are added in a fixed order, the stable part first, and the first item that does not fit
ends its part. So a larger budget only adds items at the end of the stable part, which may displace volatile items. If a
source of items fails, only its items are missing, and a notice names it.

Chunks are cut to the text that fits the message if they would take more than their share of the budget (decision 0055).
A larger budget never shows fewer chunks: shares grow with it, and an item is counted with its share, even if its cut
text is shorter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen

from klaw_core import (
    Condition,
    Extension,
    KlawError,
    PluginContractError,
    QueryError,
    SearchResult,
    SearchResults,
    estimate_tokens,
    quoted,
)
from klaw_core.cli.snippets import show_text
from klaw_core.errors import isolated
from klaw_core.values.metadata import TRUST, TRUST_CLASSES
from klaw_redaction import Redactor
from klaw_tools import (
    ArrangingExtension,
    Context,
    ContextExtension,
    ContextItem,
    ContextNotice,
    ContextQuestion,
    GatingExtension,
)
from klaw_tools.frames import item_text, one_line
from klaw_tools.interfaces import ContextPart

_CONVERSATIONS = "conversations"  # the origin of messages, and the first part of their paths
Able = TypeVar("Able", bound=Extension)

#: The lowest class of texts that a context takes unless it is asked for others.
DEFAULT_TRUST = "agent"
FOREIGN = TRUST_CLASSES[-1]

#: The priority of chunks: after everything that an extension offers by default.
CHUNK_PRIORITY = 20

# The number of chunks to search for, more than fit in any budget.
_MAX_CHUNKS = 50
# The number of results that are kept if all are weak: one of them may be right, but they must not fill a context.
_MAX_WEAK = 3
# The share of the best relevance from which on a weak result is hardly worse.
_NEARLY = 1 / 3
# The maximum shares of the budget for the best chunks and for each other one. The answer is mostly in the best chunk of
# a note; a message of any rank needs only a few sentences.
_SHARES = (0.4, 0.2)
_SHARE = 0.1
# The number of cached token counts of texts, which are needed several times per context and in later ones.
_COUNTS_KEPT = 2048
# Tokens. The minimum length of a cut text, and of one that is cut because no more fits.
_KEPT_TOKENS = 80
_MIN_TOKENS = 24
# The speaker at the start of a message.
_SPEAKER = re.compile(r"[^\s:][^:\n]{0,40}: ")
_NEVER = datetime.min.replace(tzinfo=UTC)
_PARTS: tuple[ContextPart, ...] = ("stable", "volatile")
_TITLES: Mapping[ContextPart, str] = {"stable": "## Core memory", "volatile": "## Relevant memory"}


def build_context(
    question: ContextQuestion,
    extensions: Sequence[tuple[str, Extension]],
    search: Callable[..., SearchResults],
    *,
    part: ContextPart | None = None,
    redactor: Redactor = Redactor(),  # noqa: B008  # frozen
) -> Context:
    """Return the context for a question, or one part of it. Errors of extensions and of the search become notices.

    What is written by others than the question allows is left out, and a notice says so. Raise QueryError for a class
    that does not exist.

    Secrets in what extensions offer, such as core memory, are redacted; chunks are as they were indexed.
    """
    if question.trust is not None and question.trust not in TRUST_CLASSES:
        raise QueryError(f"unknown class {quoted(question.trust)}", hint=f"one of {', '.join(TRUST_CLASSES)}")
    builder = _Builder(question, extensions, redactor)
    declined = builder.declined()
    items = builder.offered()
    if declined:
        items = [item for item in items if item.part == "stable"]
    elif part != "stable" and question.message.strip():
        try:
            found = builder.trusted(search)
        except KlawError as error:
            builder.notices.append(f"search results left out: {error}")
        else:
            # With items of extensions, hints on how to find more chunks are not needed.
            is_answered = any(item.part == "volatile" for item in items)
            heading = "Weak matches" if found.nothing_fits else "Chunks"
            shown = found[:_MAX_WEAK] if found.nothing_fits else _helping(found)
            items += [_chunk_item(result, rank, heading) for rank, result in enumerate(shown)]
            builder.notices += [notice for notice in found.notices if not is_answered or notice not in found.hints]
    unseen = [item for item in items if not item.source or item.source not in question.seen]
    items = [_safe(item) for item in builder.trusted_items(builder.arranged(unseen))]
    packer = _Packer(question)
    stable, volatile = (packer.pack(name, items) if part in {None, name} else "" for name in _PARTS)
    notices = tuple(dict.fromkeys(builder.notices))
    return Context(stable, volatile, packer.used, tuple(packer.taken), notices, declined)


@define(eq=False)
class _Builder:
    """Asks the extensions for items. If one fails, its items are missing, and a notice names it."""

    question: ContextQuestion
    extensions: Sequence[tuple[str, Extension]]
    redactor: Redactor
    notices: list[str] = field(factory=list)

    def declined(self) -> str:
        """Return why nothing is searched for, or an empty string. A failing extension does not decline."""
        for name, extension in self._having(GatingExtension):
            with self._errors_as_notices(name, f"{name} could not decide whether to search"):
                if why := extension.declines(self.question):
                    return str(why)
        return ""

    def offered(self) -> list[ContextItem]:
        """Return the items of the extensions."""
        items: list[ContextItem] = []
        for name, extension in self._having(ContextExtension):
            with self._errors_as_notices(name, f"results of {name} left out"):
                offered = list(extension.offer(self.question))
                self.notices += [item.text for item in offered if isinstance(item, ContextNotice)]
                items += self._filtered(name, [item for item in offered if not isinstance(item, ContextNotice)])
        return items

    def _filtered(self, name: str, offered: Iterable[Any]) -> list[ContextItem]:
        """Return the items that pass the filters of the question; a notice reports that others are left out."""
        items = [self._redacted(item) for item in _checked(name, offered)]
        if not self.question.filters:
            return items
        kept = [item for item in items if item.filtered]
        if len(kept) < len(items):
            self.notices.append(f"results of {name} left out: it does not apply the filters")
        return kept

    def arranged(self, items: list[ContextItem]) -> list[ContextItem]:
        """Return the items as edited by the extensions, of which a failing one changes nothing; stable ones stay."""
        stable = [item for item in items if item.part == "stable"]
        volatile = [item for item in items if item.part == "volatile"]
        for name, extension in self._having(ArrangingExtension):
            with self._errors_as_notices(name, f"{name} could not arrange the items"):
                volatile = self._known(_checked(name, extension.arrange(self.question, tuple(volatile))), volatile)
        return stable + volatile

    def _redacted(self, item: ContextItem) -> ContextItem:
        strike = self.redactor.text
        if strike(given := f"{item.text}\n{item.label}\n{item.note}") == given:
            return item
        return evolve(item, text=strike(item.text), label=strike(item.label), note=strike(item.note))

    def _known(self, arranged: list[ContextItem], given: list[ContextItem]) -> list[ContextItem]:
        """Return the arranged items; with filters, only those from the sources of the given ones."""
        if not self.question.filters:
            return arranged
        sources = {item.source for item in given}
        return [item for item in arranged if item.source in sources]

    def _having(self, ability: type[Able]) -> Iterator[tuple[str, Able]]:
        for name, extension in self.extensions:
            if isinstance(extension, ability):
                yield name, extension

    def trusted(self, search: Callable[..., SearchResults]) -> SearchResults:
        """Return the chunks of writers that are trusted enough; a notice says that others are left out.

        Most memories have no other chunks among the best ones, so the condition is added only if there are some.
        """
        filters = self.question.filters
        found = search(self.question.message, _MAX_CHUNKS, filters=filters)
        if not (left_out := sum(result.trust in self.unwanted for result in found)):
            return found
        self.notices.append(_left_out(left_out, "chunk"))
        conditions = tuple(Condition(TRUST, "!=", each) for each in self.unwanted)
        filters = evolve(filters, metadata=(*filters.metadata, *conditions))
        rest = search(self.question.message, _MAX_CHUNKS, filters=filters)
        # If nothing passes, its hint is about a condition that nobody gave.
        return rest or evolve(found, results=(), notices=found.notices, hints=found.hints)

    def trusted_items(self, items: Sequence[ContextItem]) -> list[ContextItem]:
        """Return the items of writers that are trusted enough; a notice says that others are left out."""
        kept = [item for item in items if item.trust not in self.unwanted]
        if len(kept) < len(items):
            self.notices.append(_left_out(len(items) - len(kept), "item"))
        return kept

    @property
    def unwanted(self) -> Sequence[str]:
        """The classes of writers that are trusted less than the question asks for."""
        least = self.question.trust or DEFAULT_TRUST
        return TRUST_CLASSES[TRUST_CLASSES.index(least) + 1 :]

    @contextmanager
    def _errors_as_notices(self, name: str, what: str) -> Iterator[None]:
        try:
            with isolated(f"the extension {name!r}"):
                yield
        except KlawError as error:
            self.notices.append(f"{what}: {error}")


def _checked(name: str, offered: Iterable[Any]) -> list[ContextItem]:
    items: list[Any] = list(offered)
    if wrong := [item for item in items if not isinstance(item, ContextItem)]:
        raise PluginContractError(f"the extension {name!r} offers {quoted(wrong[0])}, not a ContextItem")
    return items


def _helping(found: SearchResults) -> Sequence[SearchResult]:
    """Return what belongs into a context: not the weak chunks of notes, unless the best is hardly better.

    Messages that answer often seem weak alone.
    """
    least = _NEARLY * max((result.relevance or 0.0 for result in found), default=0.0)
    return [
        result
        for result in found
        if not result.is_weak or result.origin == _CONVERSATIONS or (result.relevance or 0.0) >= least
    ]


def _chunk_item(result: SearchResult, rank: int, heading: str) -> ContextItem:
    """Return a chunk as an item: its text and its place, which for a conversation is only the day, to save tokens."""
    place = f"{result.path}:{result.start_line}-{result.end_line}"
    if result.origin == _CONVERSATIONS:
        label, share = result.path[result.path.rfind("/") + 1 :].removesuffix(".jsonl"), _SHARE
    else:
        label = ", ".join(filter(None, (place, " > ".join(result.heading))))
        share = _SHARES[rank] if rank < len(_SHARES) else _SHARE
    text = item_text(result.content.strip())
    item = ContextItem(text, "volatile", CHUNK_PRIORITY, heading, place, result.created_at, label=label, share=share)
    return item if result.trust == "owner" else evolve(item, trust=result.trust)


def _left_out(count: int, what: str) -> str:
    """Return the notice on what writers wrote that are not trusted enough."""
    are = f"{what} that others wrote is" if count == 1 else f"{what}s that others wrote are"
    return f"{count:,} {are} left out; a search finds what is left out"


def _safe(item: ContextItem) -> ContextItem:
    """Return an item whose text stays in its place, whoever wrote it and whichever extension offers it."""
    text, note = item_text(item.text), item_text(item.note)
    label, heading = one_line(item.label), one_line(item.heading)
    if item.trust == FOREIGN and not label.startswith(FOREIGN):
        label = f"{FOREIGN}, {label}" if label else FOREIGN
    if (text, note, label, heading) == (item.text, item.note, item.label, item.heading):
        return item
    return evolve(item, text=text, note=note, label=label, heading=heading)


@lru_cache(_COUNTS_KEPT)
def _count(text: str) -> int:
    return estimate_tokens((text,))[0]


@define(eq=False)
class _Packer:
    """Adds items to parts until the budget is used up."""

    question: ContextQuestion
    used: int = 0
    taken: list[ContextItem] = field(factory=list)

    def pack(self, part: ContextPart, items: Iterable[ContextItem]) -> str:
        """Return the part as Markdown; empty if no item fits."""
        room = self.question.budget - self.used
        block = _Block(part)
        spare = 0
        for item in sorted((item for item in items if item.part == part), key=lambda item: item.priority):
            cut, spared = self._cut_to_share(item, room)
            grown = block.with_item(cut)
            if grown.tokens + spare + spared > room:
                if (last := self._cut_to_fit(block, item, room - spare)) is not None:
                    block = block.with_item(last)
                break
            block = grown
            spare += spared
        if not block.items:
            return ""
        self.used += block.tokens
        self.taken += block.items
        return block.render()

    def _cut_to_share(self, item: ContextItem, room: int) -> tuple[ContextItem, int]:
        """Return an item cut to its share of the remaining tokens, and the number of tokens that it does not use."""
        if item.share is None:
            return item, 0
        most = max(_KEPT_TOKENS, int(item.share * room))
        if len(item.text) <= most or _count(item.text) <= most:
            return item, 0
        cut = self._cut(item, most)
        return cut, most - _count(cut.text)

    def _cut_to_fit(self, block: _Block, item: ContextItem, room: int) -> ContextItem | None:
        """Return an item cut to the remaining tokens; None if they are too few, or if the item must not be cut."""
        if item.share is None:
            return None
        left = room - block.with_item(evolve(item, text="")).tokens
        cut = self._cut(item, left) if left >= _MIN_TOKENS else item
        return cut if block.with_item(cut).tokens <= room else None

    def _cut(self, item: ContextItem, most: int) -> ContextItem:
        """Return an item of at most ``most`` tokens: its speaker, and the part that fits the message best."""
        said_so = item.source.startswith(f"{_CONVERSATIONS}/") and _SPEAKER.match(item.text)
        speaker = said_so[0] if said_so else ""
        said = item.text[len(speaker) :]
        most -= _count(speaker)
        characters = len(said) * most // max(_count(said), 1)
        shown = show_text(said, self.question.message)
        while characters >= _MIN_TOKENS:
            snippet = shown.snippet(characters).text
            if (tokens := _count(snippet)) <= most:
                return evolve(item, text=speaker + item_text(snippet))
            characters = min(characters - 1, characters * most // tokens)
        return item


@frozen(eq=False)
class _Block:
    """The items of a part as Markdown: lists, each under its heading, below the title of the part.

    The tokens of lines are added, which is exact, because no token of the estimate contains white space. ``labels`` are
    the tokens of the labels of the last list, which starts at the item ``first``; another item may change which of them
    are shown.
    """

    part: ContextPart
    items: tuple[ContextItem, ...] = ()
    tokens: int = 0
    labels: int = 0
    first: int = 0

    def with_item(self, item: ContextItem) -> _Block:
        """Return the block with one more item at its end."""
        items = (*self.items, item)
        tokens = self.tokens + 1 + _count(item.text + item.note)
        if self.items and self.items[-1].heading == item.heading:
            tokens, first = tokens - self.labels, self.first
        else:
            tokens, first = tokens + _count(f"### {item.heading}"), len(self.items)
            tokens += 0 if self.items else _count(_TITLES[self.part])
        shown = _shown_labels(_in_time(items[first:]))
        labels = sum(_count(f"[{label}]") for label in shown if label)
        return _Block(self.part, items, tokens + labels, labels, first)

    def render(self) -> str:
        """Return the Markdown."""
        blocks = [
            f"### {heading}\n\n" + "\n".join(_lines(_in_time(list(group))))
            for heading, group in groupby(self.items, key=lambda item: item.heading)
        ]
        return "\n\n".join([_TITLES[self.part], *blocks])


def _lines(items: Sequence[ContextItem]) -> Iterator[str]:
    """Yield items as lines of a list."""
    for item, label in zip(items, _shown_labels(items), strict=True):
        yield f"- [{label}] {item.text}{item.note}" if label else f"- {item.text}{item.note}"


def _shown_labels(items: Sequence[ContextItem]) -> Iterator[str]:
    """Yield the labels of the items in a list; a label that repeats the previous one is empty."""
    previous = ""
    for item in items:
        yield "" if item.label == previous else item.label
        previous = item.label


def _in_time(items: Sequence[ContextItem]) -> list[ContextItem]:
    """Return the items of a group in the order in which they are shown: those with ``newest_first``, latest first."""
    timed = [item for item in items if item.newest_first and item.created_at is not None]
    latest = iter(sorted(timed, key=lambda item: item.created_at or _NEVER, reverse=True))
    return [next(latest) if item.newest_first and item.created_at is not None else item for item in items]
