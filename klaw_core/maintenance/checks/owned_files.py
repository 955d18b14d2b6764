"""Whether the files that a person owns are sound. They are the truth: only what was left unfinished is mended."""

import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from klaw_core.conversations.chat import Chat
from klaw_core.conversations.journal import Journal
from klaw_core.conversations.summaries import SummaryFiles
from klaw_core.core_memory.facts import FILE_NAME as CORE_FILE
from klaw_core.core_memory.facts import CoreMemory
from klaw_core.errors import KlawError
from klaw_core.files.jsonl import BadLine
from klaw_core.sources.saved import SavedJournal
from klaw_core.sources.workspaces import Workspaces
from klaw_core.values.findings import FIX, Finding, Severity, named
from klaw_core.values.runs import SkippedEntry

SAVED_FILE = "saved.jsonl"
WORKSPACES_FILE = "workspaces.json"
CONVERSATIONS = "conversations"
SUMMARIES = "summaries"

_PRIVATE = 0o600


def check_owned(data_dir: Path) -> Iterator[Finding]:
    """Look at every file in the data directory that is not derived from others."""
    yield from check_modes(data_dir)
    yield from check_saved(data_dir / SAVED_FILE)
    yield from _check_readable("core-memory", data_dir / CORE_FILE, CoreMemory(data_dir / CORE_FILE).get)
    yield from _check_readable("workspaces", data_dir / WORKSPACES_FILE, Workspaces(data_dir / WORKSPACES_FILE).all)
    yield from check_conversations(data_dir / CONVERSATIONS)
    yield from check_summaries(data_dir / SUMMARIES)


def mend_owned(data_dir: Path) -> None:
    """Finish forgetting what a crash interrupted, and make the files private where that can be. Raise StoreError."""
    for path in _files(data_dir):
        if _mode(path) & ~_PRIVATE:
            with suppress(OSError):  # another's file, or a disk that cannot be written: the next file may be mended
                path.chmod(_PRIVATE)
    SavedJournal(data_dir / SAVED_FILE).finish()


def check_modes(data_dir: Path) -> Iterator[Finding]:
    """Look whether only the owner may read the files."""
    for path in _files(data_dir):
        if _mode(path) & ~_PRIVATE:
            yield Finding(
                "permissions", "error", f"others than you may use it (mode {_mode(path):03o})", str(path), FIX
            )


def check_saved(path: Path) -> Iterator[Finding]:
    """Look for lines of the journal of saved memories that are broken, and for texts that should be gone."""
    replayed = SavedJournal(path).read()
    yield from _bad_lines("saved-lines", path, replayed.bad)
    if replayed.unfinished:
        what = f"{len(replayed.unfinished):,} forgotten memories still have their text in the file"
        yield Finding("saved-unfinished", "error", what, str(path), FIX, replayed.unfinished)


def check_conversations(root: Path) -> Iterator[Finding]:
    """Look for broken lines in the journals of conversations, and for files that are none."""
    journal = Journal(root)
    listing = journal.files()
    for file in listing.files:
        bad = [line for line in journal.read_file(file) if isinstance(line, BadLine)]
        yield from _bad_lines("conversation-lines", file.path, bad)
    yield from _strays(root, listing.skipped)


def check_summaries(root: Path) -> Iterator[Finding]:
    """Look for broken lines in the summaries of conversations, and for what among them is of no chat."""
    files = SummaryFiles(root)
    listing = list(files.listing())
    for chat in listing:
        if isinstance(chat, Chat):
            bad = [line for line in files.lines(chat) if isinstance(line, BadLine)]
            yield from _bad_lines("conversation-lines", files.path(chat), bad)
    yield from _strays(root, [item for item in listing if isinstance(item, SkippedEntry)])


def _strays(root: Path, skipped: Sequence[SkippedEntry]) -> Iterator[Finding]:
    if skipped:
        paths = tuple(f"{item.path} {item.reason}" for item in skipped)
        yield Finding("conversation-files", "warning", named(paths), str(root), "move them elsewhere", paths)


def _bad_lines(check: str, path: Path, bad: Iterable[BadLine]) -> Iterator[Finding]:
    """Report broken lines. One that a crash cut short was never acknowledged, and costs nothing but itself."""
    lines = tuple(bad)
    places = tuple(f"byte {line.offset:,}: {line.reason}" for line in lines)
    if not lines:
        return
    severity: Severity = "warning" if all(line.torn or line.cut for line in lines) else "error"
    what = f"{len(lines):,} {'line is' if len(lines) == 1 else 'lines are'} broken: {named(places)}"
    yield Finding(check, severity, what, str(path), "mend the file by hand; its other lines are used", places)


def _check_readable(check: str, path: Path, read: Callable[[], object]) -> Iterator[Finding]:
    try:
        read()
    except KlawError as error:
        yield Finding(check, "error", error.message, str(path), error.hint)


def _files(data_dir: Path) -> Iterator[Path]:
    for name in (SAVED_FILE, CORE_FILE, WORKSPACES_FILE):
        path = data_dir / name
        if path.is_file():
            yield path
    yield from (file.path for file in Journal(data_dir / CONVERSATIONS).files().files)
    summaries = SummaryFiles(data_dir / SUMMARIES)
    yield from (summaries.path(chat) for chat in summaries.listing() if isinstance(chat, Chat))


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:  # it has gone meanwhile
        return _PRIVATE
