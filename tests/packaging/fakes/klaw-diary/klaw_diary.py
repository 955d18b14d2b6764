"""An extension in one module: a diary, one file a day in the data directory, one chunk an entry."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import click
from attrs import define, field, frozen

from klaw_core import (
    AttachedExtension,
    CheckedExtension,
    Component,
    ComponentContext,
    Document,
    Entry,
    Finding,
    Forgetful,
    Forgettable,
    Host,
    IndexEvent,
    ListeningExtension,
    NoOptions,
    RecordError,
    SearchEvent,
    SearchRequest,
    SkippedEntry,
    Source,
    SourcedExtension,
    Span,
    StatusExtension,
    TokenCounter,
    Tool,
    ToolExtension,
    hookimpl,
    locked,
    write_atomically,
)
from klaw_core.cli.kit import Settings, common_options, data, pass_settings, print_json
from klaw_journals import ImportCounts, Record, RecordedExtension
from klaw_tools import ContextExtension, ContextItem, ContextQuestion

NAME = "diary"
_FINDS = "finds.json"
_FILE = re.compile(r"\d{4}-\d{2}-\d{2}\.diary")
_ENTRY = re.compile(r"^@ (?P<mood>\w+)[^\S\n]*\n(?P<text>(?:(?!@ ).*\n?)*)", re.MULTILINE)


@frozen
class DiaryOptions:
    """The table ``[extensions.diary]``: the mood of an entry that names none."""

    mood: str = "neutral"


@frozen
class DiaryChunker:
    """Cuts a day into its entries, whatever their size: diary entries are short."""

    def split(self, text: str, _count_tokens: TokenCounter, /) -> Iterator[Span]:
        """Yield a span for each entry, without its first line."""
        for match in _ENTRY.finditer(text):
            start, end = match.span("text")
            solid = text[start:end]
            if solid.strip():
                yield Span(start, start + len(solid.rstrip()), heading=(match["mood"],))


@frozen(eq=False)
class DiarySource(Source, Forgettable, Forgetful):
    """The files of a directory, named ``diary/2026-02-24.diary``."""

    root: Path

    origin = NAME
    collection = NAME
    forgets_missing = True

    def scan(self) -> Iterable[Entry | SkippedEntry]:
        """Return every day."""
        return [Entry(f"{NAME}/{path.name}", path.stat().st_size) for path in self._files()]

    def read(self, entry: Entry, /) -> Document | SkippedEntry:
        """Read one day; its moods are metadata."""
        path = self.root / entry.path.removeprefix(f"{NAME}/")
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return SkippedEntry(entry.path, str(error), keep=True)
        moods = tuple(dict.fromkeys(match["mood"] for match in _ENTRY.finditer(text)))
        day = datetime.combine(date.fromisoformat(path.stem), datetime.min.time(), UTC)
        metadata = {"moods": moods, "entries": len(_ENTRY.findall(text)), "weekend": day.weekday() >= 5}
        return Document(entry.path, text, path.name, NAME, day, format=NAME, metadata=metadata)

    def forget(self, paths: Sequence[str], /) -> None:
        """Remove days for good."""
        for path in paths:
            (self.root / path.removeprefix(f"{NAME}/")).unlink(missing_ok=True)

    def forgotten(self, paths: Iterable[str], /) -> Sequence[str]:
        """Return the days whose files are gone."""
        there = {f"{NAME}/{path.name}" for path in self._files()}
        return [path for path in paths if path not in there]

    def watch_paths(self) -> Sequence[Path]:
        """Return the directory."""
        return (self.root,)

    def _files(self) -> list[Path]:
        return sorted(path for path in self.root.glob("*.diary") if _FILE.fullmatch(path.name))


@define(eq=False)
class Diary(
    AttachedExtension,
    SourcedExtension,
    ToolExtension,
    CheckedExtension,
    RecordedExtension,
    ListeningExtension,
    ContextExtension,
    StatusExtension,
):
    """The extension."""

    options: DiaryOptions
    root: Path
    origins: Sequence[str] = (NAME,)
    record_kinds: Sequence[str] = (NAME,)
    _host: Host | None = field(default=None, init=False)

    name = NAME

    def attach(self, host: Host, /) -> None:
        """Take the host."""
        self._host = host

    @property
    def host(self) -> Host:
        """The memory that this diary is part of."""
        assert self._host is not None
        return self._host

    def write(self, text: str, mood: str = "", day: date | None = None) -> str:
        """Add an entry to a day (today) and index it; return the day's path."""
        if not text.strip():
            raise RecordError("a diary entry needs a text")
        name = f"{(day or datetime.now(UTC).date()).isoformat()}.diary"
        with locked(self.root):
            path = self.root / name
            before = path.read_text("utf-8") if path.exists() else ""
            write_atomically(path, f"{before}@ {mood or self.options.mood}\n{text.strip()}\n")
        self.host.index(NAME)
        return f"{NAME}/{name}"

    def sources(self) -> Sequence[DiarySource]:
        """Return the files, once there are any."""
        return (DiarySource(self.root),) if self.root.is_dir() else ()

    def tools(self) -> Sequence[Tool]:
        """Return the tool that writes."""
        properties = {
            "text": {"type": "string", "description": "What happened.", "minLength": 1},
            "mood": {"type": "string", "description": "One word.", "pattern": r"^\w+$"},
        }
        return (Tool("memory_diary", "Write an entry of the diary.", properties, self._tool, ("text",)),)

    def _tool(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"written": self.write(arguments["text"], arguments.get("mood", ""))}

    def check(self) -> Iterator[Finding]:
        """Look for days whose last line has no end: the next entry would be glued to it."""
        for path in self._unfinished():
            what = "its last line has no end"
            yield Finding("diary-end", "warning", what, str(path), "klaw doctor --fix")

    def fix(self, _findings: Sequence[Finding], /) -> None:
        """End every last line."""
        for path in self._unfinished():
            with locked(self.root):
                write_atomically(path, path.read_text("utf-8") + "\n")

    def _unfinished(self) -> list[Path]:
        return [path for path in sorted(self.root.glob("*.diary")) if not path.read_text("utf-8").endswith("\n")]

    def records(self) -> Iterator[Record | SkippedEntry]:
        """Yield every day."""
        for path in sorted(self.root.glob("*.diary")):
            yield Record(NAME, {"day": path.stem, "text": path.read_text("utf-8")})

    def check_record(self, record: Record, /) -> None:
        """Raise RecordError unless this is a day."""
        date.fromisoformat(record.value["day"])
        if not isinstance(record.value["text"], str):
            raise RecordError("the text of a day is not a string")

    def add(self, records: Iterator[Record], /) -> ImportCounts:
        """Add days; one that is here stays as it is."""
        counts = ImportCounts()
        for record in records:
            path = self.root / f"{record.value['day']}.diary"
            if path.exists():
                same = path.read_text("utf-8") == record.value["text"]
                counts += (
                    ImportCounts(present=1)
                    if same
                    else ImportCounts(kept=(f"{path.name} already exists with other content",))
                )
                continue
            write_atomically(path, str(record.value["text"]))
            counts += ImportCounts(added=1)
        return counts

    def on(self, event: object, /) -> None:
        """Count how often each day is found."""
        if not isinstance(event, SearchEvent):
            return
        paths = {result.path for result in event.results if result.collection == NAME}
        if paths:
            with locked(self.root):
                counts = Counter(self.finds())
                counts.update(paths)
                write_atomically(self.root / _FINDS, json.dumps(dict(sorted(counts.items()))))

    def finds(self) -> dict[str, int]:
        """Return how often each day was found."""
        path = self.root / _FINDS
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    def offer(self, question: ContextQuestion, /) -> Iterable[ContextItem]:
        """Offer the days that a question is about."""
        if not self.root.is_dir():
            return
        for result in self.host.search(SearchRequest(question.message, 3, collections=NAME)):
            yield ContextItem(result.content, heading="Diary", source=result.path)

    def status(self) -> dict[str, int | str]:
        """Return how many days there are."""
        return {"diary_days": len(list(self.root.glob("*.diary")))}


@hookimpl
def klaw_extensions() -> Iterable[Component[DiaryOptions, Diary]]:
    """Yield the diary."""

    def build(options: DiaryOptions, context: ComponentContext) -> Diary:
        return Diary(options, context.data_dir / NAME)

    listens = (SearchEvent, IndexEvent)
    yield Component(NAME, DiaryOptions, build, api=2, summary="a diary", listens=listens, separate=(NAME,))


@hookimpl
def klaw_chunkers() -> Iterable[Component[Any, DiaryChunker]]:
    """Yield the chunker of the format ``diary``."""

    yield Component(NAME, NoOptions, lambda _options, _context: DiaryChunker(), api=2, summary="entries of a diary")


@click.command("diary", short_help="Write an entry of the diary.")
@click.argument("text")
@click.option("--mood", default="", help="One word.")
@common_options
@pass_settings
def command(settings: Settings, *, text: str, mood: str) -> None:
    """Write TEXT into the diary of today."""
    with settings.open_memory() as memory:
        path = memory.extension(Diary).write(text, mood)
    if settings.json:
        print_json({"written": path})
    else:
        data().line(f"written to {path}")
