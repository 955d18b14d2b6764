"""A source: the log files of a directory, each of which is one document."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from attrs import frozen

from klaw_core import Component, Document, Entry, SkippedEntry, Source, WorkspaceError, hookimpl


@frozen
class Options:
    """The keys next to ``type = "skeleton"``."""

    directory: str


@frozen(eq=False)
class SkeletonSource(Source):
    """Reads ``*.log`` files; a document has the path ``skeleton/NAME``."""

    root: Path
    origin = "skeleton"

    def scan(self) -> Iterable[Entry]:
        """Yield the files, without reading them."""
        if not self.root.is_dir():
            raise WorkspaceError(f"{self.root} is not a directory", hint="correct `directory` in the configuration")
        return [Entry(f"{self.origin}/{path.name}", path.stat().st_size) for path in sorted(self.root.glob("*.log"))]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one file."""
        path = self.root / entry.path.removeprefix(f"{self.origin}/")
        try:
            text, written = path.read_text("utf-8"), datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except (OSError, UnicodeDecodeError) as error:
            return SkippedEntry(entry.path, str(error), keep=path.exists())
        if not text.strip():
            return SkippedEntry(entry.path, "is empty", keep=False)
        return Document(entry.path, text, path.name, self.origin, written, format="plain")


@hookimpl
def klaw_sources() -> Iterable[Component[Options, Source]]:
    """Yield the source."""
    yield Component("skeleton", Options, lambda options, _: SkeletonSource(Path(options.directory).expanduser()), api=2)
