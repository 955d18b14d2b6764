"""Find a document by its path as it is shown: without what nobody sees, so in other characters than it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol, TypeVar

from klaw_core.cli.neutral import one_line, visible
from klaw_core.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from klaw_core.values.documents import DocumentRecord

T = TypeVar("T")
_PAGE = 1000  # documents per query
_ENDS = ":#"  # what a range of lines or a heading begins with


class ListedMemory(Protocol):
    """The methods of ``Memory`` that list the paths of documents."""

    def collections(self) -> Sequence[str]:
        """Return the names of all collections."""

    def documents(self, *, collection: str, after: str, limit: int) -> Sequence[DocumentRecord]:
        """Return indexed documents in order of path, a page at a time."""


def with_shown_path(memory: ListedMemory, target: str, act: Callable[[str], T]) -> T:
    """Return what ``act`` returns for a target, or else for the document that is shown so. Raise NotFoundError."""
    try:
        return act(target)
    except NotFoundError:
        if (path := path_as_shown(memory, target)) in {None, target}:
            raise
    return act(str(path))


def path_as_shown(memory: ListedMemory, target: str) -> str | None:
    """Return a target with the real path of the only document that is shown so; None if there is none, or several.

    The range or heading at the end of the target stays. Every path of the memory is compared, so this is for a target
    that names nothing.
    """
    ends = (len(target), *(at for at in reversed(range(len(target))) if target[at] in _ENDS))
    wanted = {shown: target[end:] for end in ends if end for shown in _shown(target[:end])}
    shown_paths = ((path, wanted.get(shown)) for path in _paths(memory) for shown in _shown(path))
    found = {(path, rest) for path, rest in shown_paths if rest is not None}
    return "".join(found.pop()) if len(found) == 1 else None


def _shown(path: str) -> Iterator[str]:
    """Yield a path as lists for people show it, and as answers for models do, on one line."""
    for text in (path, visible(path)):
        yield " ".join(one_line(text).split())


def _paths(memory: ListedMemory) -> Iterator[str]:
    for name in memory.collections():
        after = ""
        while page := memory.documents(collection=name, after=after, limit=_PAGE):
            yield from (record.path for record in page)
            after = page[-1].path
