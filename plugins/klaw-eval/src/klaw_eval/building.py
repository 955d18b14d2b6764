"""Index a test set as a user would: notes in a workspace, messages in journals, and ``Memory.index``."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from attrs import evolve, field, frozen

from klaw_core import IndexReport, KlawError, Memory, Message, NotFoundError, Progress, SearchResult
from klaw_eval.errors import DatasetError
from klaw_eval.notes import note_path, write_notes
from klaw_eval.values import Conversation, Corpus, Question

if TYPE_CHECKING:
    from klaw_core import Config

_WORKSPACE = "notes"
_CHANNEL = "eval"
_PROBE = 20  # chunks that are searched for a text to decide whether it is in the index


@frozen
class OpenIndex:
    """An open index.

    ``units_of`` returns the ids in a result, best first; ``known`` are the wanted ids that are in the index; ``shown``
    are two ids of the index, for an error message. ``places`` has the files that contain each id, and the existence of
    ``written`` means that all files are complete; both are empty if the index was not built here. ``units`` has the id
    of each line of a journal.
    """

    memory: Memory
    units_of: Callable[[SearchResult, Question], Iterable[str]]
    known: frozenset[str]
    shown: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    places: Mapping[str, frozenset[Path]] = field(factory=dict, repr=False)
    written: Path | None = None
    units: Mapping[tuple[str, int], str] = field(factory=dict, repr=False)

    @property
    def files(self) -> frozenset[Path]:
        """All files that were written for the index."""
        return frozenset().union(*self.places.values())

    def files_of(self, ids: Iterable[str]) -> frozenset[Path]:
        """Return the files that contain any of these ids."""
        return frozenset().union(*(self.places.get(name, frozenset()) for name in ids))

    @contextmanager
    def unfinished(self) -> Iterator[None]:
        """Mark the files as incomplete during the block; if the process dies in it, the next run writes them again."""
        if self.written is not None:
            self.written.unlink()
        yield
        if self.written is not None:
            self.written.touch()


#: Shows the progress of an index run during a block.
IndexingProgress: TypeAlias = Callable[[], AbstractContextManager[Callable[[Progress], None]]]


@contextmanager
def build(corpus: Corpus, unit: str, config: Config, root: Path, indexing: IndexingProgress) -> Iterator[OpenIndex]:
    """Index a corpus below ``root``, or find its index there, and yield it, open. Raise DatasetError, KlawError.

    An incomplete index of the same documents and configuration is continued.
    """
    place = index_directory(corpus, config, root)
    with Memory.open(evolve(config, data_dir=place / "data", sources=())) as memory:
        refuse_elsewhere(memory, place)
        _write(corpus, memory, place)
        report = IndexReport()
        with indexing() as on_progress:
            if corpus.pages:
                report += memory.index(place / _WORKSPACE, name=_WORKSPACE, on_progress=on_progress)
            if corpus.talks:
                report += memory.index(on_progress=on_progress)
        # A path means a skipped document, and `path@offset` a skipped line of a journal.
        skipped = {item.path: item.reason for item in report.skipped}
        units = _units_by_place(corpus, unit, memory)
        known = frozenset(name for (path, _), name in units.items() if path not in skipped)
        reasons = sorted(set(skipped.values()))
        notices = (f"{len(skipped)} documents could not be indexed: {'; '.join(reasons)}",) if skipped else ()
        shown = tuple(dict.fromkeys(units.values()))[:2]
        places = _places(units, place)
        yield OpenIndex(memory, _by_lines(units), known, shown, notices, places, place / "written", units)


@contextmanager
def open_own_index(corpus: Corpus, config: Config) -> Iterator[OpenIndex]:
    """Open the index in a configuration unchanged. Raise KlawError."""
    with Memory.open(config) as memory:
        known = frozenset(
            name
            for question in corpus.questions
            for name in question.gold
            if (_holds_text(memory, name) if question.contains else _holds_path(memory, name))
        )
        yield OpenIndex(memory, text_units, known, tuple(f"{name}/…" for name in memory.status().origins)[:2])


def index_directory(corpus: Corpus, config: Config, root: Path) -> Path:
    """Return a directory below ``root`` for an index; equal indexes have the same directory.

    Weights, fusion and reranking only determine how an index is searched, so they do not change the directory.
    """
    retrievers = [(item.type, sorted(item.options.items(), key=str)) for item in config.retrieval]
    recipe = (config.store, config.chunking, config.embedding, retrievers, config.conversations)
    digest = sha256(repr(recipe).encode())
    for page in corpus.pages:
        digest.update(f"{page.id}\0{page.title}\0{page.text}\0".encode("utf-8", "surrogatepass"))
    for turn in (turn for talk in corpus.talks for turn in talk.turns):
        digest.update(f"{turn.id}\0{turn.speaker}\0{turn.ts}\0{turn.text}\0".encode("utf-8", "surrogatepass"))
    return root / digest.hexdigest()[:16]


def refuse_elsewhere(memory: Memory, place: Path) -> None:
    """Raise DatasetError if the store is not in the directory of this run, to protect other indexes."""
    location = memory.status().location
    if location != "memory" and not Path(location).resolve().is_relative_to(place.resolve()):
        raise DatasetError(
            f"the configured store keeps its data in {location}, where test sets must not be indexed",
            hint="use a configuration that does not set this place: klaw eval --config FILE",
        )


def _write(corpus: Corpus, memory: Memory, place: Path) -> None:
    """Write notes and journals, unless they are complete."""
    done = place / "written"
    if done.exists():
        return
    shutil.rmtree(place / _WORKSPACE, ignore_errors=True)
    shutil.rmtree(memory.config.data_dir / "conversations", ignore_errors=True)
    try:
        (place / _WORKSPACE).mkdir()
        write_notes(corpus.pages, place / _WORKSPACE)
        for talk in corpus.talks:
            memory.conversations.append_many(_messages(talk))
        done.touch()
    except OSError as error:
        raise DatasetError(f"{place} cannot be written: {error.strerror or error}") from error


def _messages(talk: Conversation) -> Iterator[Message]:
    """Yield the messages of a conversation: a break before each session, with the name of each speaker."""
    meta, session = {"channel": _CHANNEL, "chat_id": talk.name}, ""
    for turn in talk.turns:
        if turn.session != session:
            yield Message("system", "", turn.ts, id=f"{turn.session}/begins", type="session_break", meta=meta)
            session = turn.session
        yield Message(turn.role, turn.text, turn.ts, id=turn.id, meta={**meta, "name": turn.speaker})


def _units_by_place(corpus: Corpus, unit: str, memory: Memory) -> Mapping[tuple[str, int], str]:
    """Return the id of each note (with line 0) and of each line of a journal."""
    units = {(f"{_WORKSPACE}/{note_path(number)}", 0): page.id for number, page in enumerate(corpus.pages)}
    turns = {turn.id: turn for talk in corpus.talks for turn in talk.turns}
    if not turns:  # notes alone, for which no journals are needed
        return units
    journal = memory.conversations.journal
    for file in journal.files().files:
        path = f"conversations/{file.chat.name}/{file.name}"
        for number, line in enumerate(journal.read_file(file), start=1):
            turn = turns.get(getattr(getattr(line, "message", None), "id", ""))
            if turn is not None:
                units[path, number] = turn.id if unit == "turn" else turn.session
    return units


def _places(units: Mapping[tuple[str, int], str], place: Path) -> Mapping[str, frozenset[Path]]:
    """Return the files of each id: notes are below the directory itself, journals in the data directory."""
    found: dict[str, set[Path]] = {}
    for (path, _), name in units.items():
        directory = place if path.startswith(f"{_WORKSPACE}/") else place / "data"
        found.setdefault(name, set()).add(directory / path)
    return {name: frozenset(files) for name, files in found.items()}


def _by_lines(units: Mapping[tuple[str, int], str]) -> Callable[[SearchResult, Question], Iterable[str]]:
    def units_of(result: SearchResult, _question: Question) -> Iterator[str]:
        for line in (0, *range(result.start_line, result.end_line + 1)):
            if name := units.get((result.path, line)):
                yield name

    return units_of


def text_units(result: SearchResult, question: Question) -> Iterable[str]:
    """Return the wanted texts that a chunk contains, otherwise its id; or its path, if paths are wanted."""
    if not question.contains:
        return (result.path,)
    return [text for text in question.contains if holds(result.content, text)] or (result.chunk_id,)


def holds(chunk: str, text: str) -> bool:
    """Return whether a chunk contains a text, regardless of white space."""
    return " ".join(text.split()).casefold() in " ".join(chunk.split()).casefold()


def _holds_path(memory: Memory, path: str) -> bool:
    try:
        return memory.get(path, 1, 1).path == path
    except NotFoundError:
        return False


def _holds_text(memory: Memory, text: str) -> bool:
    try:
        return any(holds(result.content, text) for result in memory.search(text[:1_000], _PROBE))
    except KlawError:  # the text has no words to search for
        return False
