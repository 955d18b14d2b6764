"""Context for a model's prompt: what extensions offer and the best chunks, packed under a token budget.

Packing is deterministic. Items are taken in a fixed order, the stable part first, and the first that does not fit ends
its part. So a larger budget only ever adds items at the end of the stable part, and is never used less; a stable item
that it has room for may take the room of volatile ones. A failure to look something up costs that part only, and is a
notice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from attrs import define, field

from klaw_core.embedding.token_estimate import estimate_tokens
from klaw_core.errors import KlawError, PluginContractError, isolated
from klaw_core.interfaces.extension import ContextExtension
from klaw_core.values.context import Context, ContextItem, ContextPart, ContextQuestion
from klaw_core.values.search import SearchResult, SearchResults

#: The priority of chunks: after everything that an extension offers by default.
CHUNK_PRIORITY = 20

# More chunks than any budget holds.
_MAX_CHUNKS = 50
_TITLES: Mapping[ContextPart, str] = {"stable": "## Core memory", "volatile": "## Relevant memory"}


def build_context(
    question: ContextQuestion,
    extensions: Sequence[tuple[str, ContextExtension]],
    search: Callable[[str, int], SearchResults],
    count_tokens: Callable[[str], int] | None = None,
) -> Context:
    """Return the context for a question. Nothing that an extension or the search raises escapes."""
    items: list[ContextItem] = []
    notices: list[str] = []
    for name, extension in extensions:
        try:
            with isolated(f"the extension {name!r}"):
                offered: list[Any] = list(extension.offer(question))
                if wrong := [item for item in offered if not isinstance(item, ContextItem)]:
                    raise PluginContractError(f"the extension {name!r} offers {wrong[0]!r:.80}, no ContextItem")
                items += offered
        except KlawError as error:
            notices.append(f"without what {name} knows: {error}")
    if question.message.strip():
        try:
            found = search(question.message, _MAX_CHUNKS)
        except KlawError as error:
            notices.append(f"without what a search finds: {error}")
        else:
            items += map(_chunk_item, found)
            notices += found.notices
    packer = _Packer(question.budget, count_tokens or _estimate)
    stable = packer.pack("stable", items)
    volatile = packer.pack("volatile", items)
    return Context(stable, volatile, packer.used, tuple(packer.taken), tuple(dict.fromkeys(notices)))


def _chunk_item(result: SearchResult) -> ContextItem:
    """Return a chunk as an item: its text, and where it stands."""
    place = f"{result.path}:{result.start_line}-{result.end_line}"
    above = " > ".join(result.heading)
    label = f"{place}, {above}" if above else place
    text = f"[{label}] " + "\n  ".join(result.content.strip().splitlines())
    return ContextItem(text, "volatile", CHUNK_PRIORITY, "Chunks of notes and conversations", place)


def _estimate(text: str) -> int:
    return estimate_tokens([text])[0]


@define(eq=False)
class _Packer:
    """Fills parts until the budget is used up."""

    budget: int
    count_tokens: Callable[[str], int]
    used: int = 0
    taken: list[ContextItem] = field(factory=list)

    def pack(self, part: ContextPart, items: Iterable[ContextItem]) -> str:
        """Return the part as Markdown, empty if nothing fits."""
        ordered = sorted((item for item in items if item.part == part), key=lambda item: item.priority)
        chosen: list[ContextItem] = []
        text = ""
        for item in ordered:
            longer = _render(part, [*chosen, item])
            if self.used + self.count_tokens(longer) > self.budget:
                break
            chosen.append(item)
            text = longer
        if chosen:
            self.used += self.count_tokens(text)
            self.taken += chosen
        return text


def _render(part: ContextPart, items: Sequence[ContextItem]) -> str:
    """Return items as lists, each under its heading, below the title of the part."""
    blocks = [
        f"### {heading}\n\n" + "\n".join(f"- {item.text}" for item in group)
        for heading, group in groupby(items, key=lambda item: item.heading)
    ]
    return "\n\n".join([_TITLES[part], *blocks])
