"""A reranking stage as it is configured. What it does is imported at its first use."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from klaw_core.interfaces.components import Reranker
    from klaw_core.values.text import StoredChunk


@frozen(eq=False, repr=False)
class Stage:
    """A configured reranker. It is built at its first use, and again if that fails.

    It gets only candidates whose path begins with one of ``paths``, if there are any, and reorders them among their
    places.
    """

    name: str
    build: Callable[[], Reranker]
    paths: tuple[str, ...] = ()

    @cached_property
    def reranker(self) -> Reranker:
        """The reranker. Raise what its factory raises."""
        return self.build()

    def concerns(self, stored: StoredChunk) -> bool:
        """Return whether it gets this chunk."""
        return not self.paths or stored.path.startswith(self.paths)
