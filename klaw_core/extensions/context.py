"""Context for a model's prompt: what extensions offer and the best chunks, packed under a token budget.

Packing is deterministic. Items are taken in a fixed order, the stable part first, and the first that does not fit ends
its part. So a larger budget only ever adds items at the end of the stable part; a stable item that it has room for may
take the room of volatile ones. A failure to look something up costs that part only, and is a notice.

Chunks are cut to what the message asks for where they would take more than their share of the budget (decision 0055).
A larger budget never shows fewer of them: shares grow with it, and an item is counted as what its share allows, even if
its cut text is shorter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import groupby
from pathlib import PurePosixPath
from typing import Any

from attrs import define, evolve, field

from klaw_core.conversations.source import CONVERSATIONS
from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import KlawError, PluginContractError, isolated
from klaw_core.interfaces.extension import ArrangingExtension, ContextExtension, Extension, GatingExtension
from klaw_core.searching.snippets import make_snippet
from klaw_core.values.context import Context, ContextItem, ContextPart, ContextQuestion
from klaw_core.values.search import SearchResult, SearchResults

#: The priority of chunks: after everything that an extension offers by default.
CHUNK_PRIORITY = 20

# More chunks than any budget holds.
_MAX_CHUNKS = 50
# The shares of the budget that the best chunks, and each other one, may take. The answer stands in the best chunk of a
# note most of the time; a message says what it says in a few sentences, whatever its rank.
_SHARES = (0.4, 0.2)
_SHARE = 0.1
# What a cut text keeps at least, and what of one is worth showing where no more fits.
_KEPT_TOKENS = 80
_FEWEST_TOKENS = 24
# Who said it, at the beginning of a message.
_SPEAKER = re.compile(r"[^\s:][^:\n]{0,40}: ")
_NEVER = datetime.min.replace(tzinfo=UTC)
_PARTS: tuple[ContextPart, ...] = ("stable", "volatile")
_TITLES: Mapping[ContextPart, str] = {"stable": "## Core memory", "volatile": "## Relevant memory"}


def build_context(
    question: ContextQuestion,
    extensions: Sequence[tuple[str, Extension]],
    search: Callable[[str, int], SearchResults],
    count_tokens: Callable[[str], int] | None = None,
    *,
    part: ContextPart | None = None,
) -> Context:
    """Return the context for a question, or one part of it. Nothing that an extension or the search raises escapes."""
    builder = _Builder(question, extensions)
    declined = builder.declined()
    items = builder.offered()
    if declined:
        items = [item for item in items if item.part == "stable"]
    elif part != "stable" and question.message.strip():
        try:
            found = search(question.message, _MAX_CHUNKS)
        except KlawError as error:
            builder.notices.append(f"search results left out: {error}")
        else:
            # Items of extensions answer already; then how to find more chunks does not matter.
            is_answered = any(item.part == "volatile" for item in items)
            items += [_chunk_item(result, rank) for rank, result in enumerate(found)]
            builder.notices += [notice for notice in found.notices if not is_answered or notice not in found.hints]
    items = builder.arranged([item for item in items if not item.source or item.source not in question.seen])
    packer = _Packer(question, count_tokens or _estimate)
    stable, volatile = (packer.pack(name, items) if part in {None, name} else "" for name in _PARTS)
    notices = tuple(dict.fromkeys(builder.notices))
    return Context(stable, volatile, packer.used, tuple(packer.taken), notices, declined)


@define(eq=False)
class _Builder:
    """Asks the extensions. What one of them raises costs its own part, and is a notice."""

    question: ContextQuestion
    extensions: Sequence[tuple[str, Extension]]
    notices: list[str] = field(factory=list)

    def declined(self) -> str:
        """Return why nothing is looked up; empty if something is. An extension that fails declines nothing."""
        for name, extension in self.extensions:
            if isinstance(extension, GatingExtension):
                with self._failing(name, f"{name} could not decide whether to search"):
                    if why := extension.declines(self.question):
                        return str(why)
        return ""

    def offered(self) -> list[ContextItem]:
        """Return what the extensions offer."""
        items: list[ContextItem] = []
        for name, extension in self.extensions:
            if isinstance(extension, ContextExtension):
                with self._failing(name, f"results of {name} left out"):
                    items += _checked(name, extension.offer(self.question))
        return items

    def arranged(self, items: list[ContextItem]) -> list[ContextItem]:
        """Return the items as the extensions edit them; as they were, where one fails. Stable ones are not edited."""
        stable = [item for item in items if item.part == "stable"]
        volatile = [item for item in items if item.part == "volatile"]
        for name, extension in self.extensions:
            if isinstance(extension, ArrangingExtension):
                with self._failing(name, f"{name} could not arrange the items"):
                    volatile = _checked(name, extension.arrange(self.question, tuple(volatile)))
        return stable + volatile

    @contextmanager
    def _failing(self, name: str, what: str) -> Iterator[None]:
        try:
            with isolated(f"the extension {name!r}"):
                yield
        except KlawError as error:
            self.notices.append(f"{what}: {error}")


def _checked(name: str, offered: Iterable[Any]) -> list[ContextItem]:
    items: list[Any] = list(offered)
    if wrong := [item for item in items if not isinstance(item, ContextItem)]:
        raise PluginContractError(f"the extension {name!r} offers {wrong[0]!r:.80}, not a ContextItem")
    return items


def _chunk_item(result: SearchResult, rank: int) -> ContextItem:
    """Return a chunk as an item: its text, and where it stands; of a conversation only the day, which costs less."""
    place = f"{result.path}:{result.start_line}-{result.end_line}"
    label = ", ".join(filter(None, (place, " > ".join(result.heading))))
    share = _SHARES[rank] if rank < len(_SHARES) else _SHARE
    if result.origin == CONVERSATIONS:
        label, share = PurePosixPath(result.path).stem, _SHARE
    text = _indented(result.content.strip())
    return ContextItem(text, "volatile", CHUNK_PRIORITY, "Chunks", place, result.created_at, label=label, share=share)


def _indented(text: str) -> str:
    """Return a text whose further lines belong to the same item of a list."""
    return "\n  ".join(text.splitlines())


def _estimate(text: str) -> int:
    return estimate_tokens([text])[0]


@define(eq=False)
class _Packer:
    """Fills parts until the budget is used up."""

    question: ContextQuestion
    count_tokens: Callable[[str], int]
    used: int = 0
    taken: list[ContextItem] = field(factory=list)

    def pack(self, part: ContextPart, items: Iterable[ContextItem]) -> str:
        """Return the part as Markdown, empty if nothing fits."""
        room = self.question.budget - self.used
        chosen: list[ContextItem] = []
        text, spare = "", 0
        for item in sorted((item for item in items if item.part == part), key=lambda item: item.priority):
            cut, allowed = self._cut_to_share(item, room)
            longer = _render(part, [*chosen, cut])
            spared = spare + allowed - self.count_tokens(cut.text)
            if self.count_tokens(longer) + spared > room:
                if (last := self._cut_to_fit(part, chosen, item, room - spare)) is not None:
                    chosen.append(last)
                    text = _render(part, chosen)
                break
            chosen.append(cut)
            text, spare = longer, spared
        if chosen:
            self.used += self.count_tokens(text)
            self.taken += chosen
        return text

    def _cut_to_share(self, item: ContextItem, room: int) -> tuple[ContextItem, int]:
        """Return an item that takes no more than its share of the room, and how many tokens it is counted as."""
        whole = self.count_tokens(item.text)
        most = whole if item.share is None else max(_KEPT_TOKENS, int(item.share * room))
        return (item, whole) if whole <= most else (self._cut(item, most), most)

    def _cut_to_fit(
        self, part: ContextPart, chosen: Sequence[ContextItem], item: ContextItem, room: int
    ) -> ContextItem | None:
        """Return as much of an item as there is room for; None if that is little, or the item is never cut."""
        if item.share is None:
            return None
        left = room - self.count_tokens(_render(part, [*chosen, evolve(item, text="")]))
        cut = self._cut(item, left) if left >= _FEWEST_TOKENS else item
        return cut if self.count_tokens(_render(part, [*chosen, cut])) <= room else None

    def _cut(self, item: ContextItem, most: int) -> ContextItem:
        """Return an item of at most so many tokens: its speaker, and the stretch that the message asks for."""
        said_so = item.source.startswith(f"{CONVERSATIONS}/") and _SPEAKER.match(item.text)
        speaker = said_so[0] if said_so else ""
        said = item.text[len(speaker) :]
        most -= self.count_tokens(speaker)
        characters = len(said) * most // max(self.count_tokens(said), 1)
        while characters >= _FEWEST_TOKENS:
            snippet = make_snippet(said, self.question.message, characters).text
            if (tokens := self.count_tokens(snippet)) <= most:
                return evolve(item, text=speaker + _indented(snippet))
            characters = min(characters - 1, characters * most // tokens)
        return item


def _render(part: ContextPart, items: Sequence[ContextItem]) -> str:
    """Return items as lists, each under its heading, below the title of the part."""
    blocks = [
        f"### {heading}\n\n" + "\n".join(_lines(_in_time(list(group))))
        for heading, group in groupby(items, key=lambda item: item.heading)
    ]
    return "\n\n".join([_TITLES[part], *blocks])


def _lines(items: Sequence[ContextItem]) -> Iterator[str]:
    """Yield items as lines of a list; a label is not repeated on the next line."""
    previous = ""
    for item in items:
        text = item.text + item.note
        yield f"- [{item.label}] {text}" if item.label not in {"", previous} else f"- {text}"
        previous = item.label


def _in_time(items: list[ContextItem]) -> list[ContextItem]:
    """Return the items of a group as they are shown: in their order, but those that ask for it the latest first."""
    timed = [item for item in items if item.newest_first and item.created_at is not None]
    latest = iter(sorted(timed, key=lambda item: item.created_at or _NEVER, reverse=True))
    return [next(latest) if item.newest_first and item.created_at is not None else item for item in items]
