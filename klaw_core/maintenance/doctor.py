"""``klaw doctor``: every check, and mending what can be mended without loss.

What was mended is not believed but looked at again: a finding counts as fixed when a second examination does not
make it any more.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from attrs import evolve, frozen

from klaw_core.assembly import Assembly
from klaw_core.conversations.row_sync import RowSync
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import KlawError, as_klaw_error
from klaw_core.indexing.collection import Collection
from klaw_core.indexing.flow import Indexer
from klaw_core.interfaces.index import Index
from klaw_core.interfaces.source import Source
from klaw_core.maintenance.checks.conversations import check_rows, mend_rows
from klaw_core.maintenance.checks.indexes import check_indexes, check_model, check_space, damaged_indexes
from klaw_core.maintenance.checks.owned_files import check_owned, mend_owned
from klaw_core.maintenance.checks.sources import check_origins, check_source, remove_unknown_origins
from klaw_core.sources.saved_source import SAVED
from klaw_core.values.findings import Diagnosis, Finding

#: Gives the sources of a collection; what it raises is a finding.
Sources: TypeAlias = Callable[[], Sequence[Source]]

_WORST_FIRST = ("error", "warning", "note")
_OUTDATED = {"stale", "ghosts", "never-indexed"}


@frozen
class Doctor:
    """Examines a memory: its store, its indexes, its sources, the files a person owns, the plugins.

    ``sources`` has the sources of each collection, ``mirror`` the rows of conversations.
    """

    assembly: Assembly
    sources: Mapping[str, Sources]
    row_sync: RowSync

    def run(self, *, fix: bool = False) -> Diagnosis:
        """Examine; with ``fix`` mend what is safe and examine again. Every document and every page is read."""
        found = self._examine()
        if not fix or not found:
            return diagnosis(found)
        self._mend(found)
        left = self._examine()
        remaining = {(finding.check, finding.where) for finding in left}
        fixed = [evolve(item, fixed=True) for item in found if (item.check, item.where) not in remaining]
        return diagnosis([*left, *fixed])

    def _examine(self) -> list[Finding]:
        data_dir = self.assembly.config.data_dir
        findings = [*guarded("store", self.assembly.store.location, self.assembly.store.check)]
        findings += guarded("files", str(data_dir), check_owned, data_dir)
        findings += guarded("conversation-rows", str(self.row_sync.journal.root), check_rows, self.row_sync)
        findings += self._check_components()
        for name in self.sources:
            findings += guarded("index", name, self._check_indexes, name)
            findings += self._check_sources(name)
        return findings

    def _check_components(self) -> Iterator[Finding]:
        for configured in self.assembly.retrievers:
            if configured.problem:
                yield Finding("retriever", "error", f"it is off: {configured.problem}", configured.name, "klaw plugins")
        for plugin in self.assembly.registry.whole.plugins:
            if plugin.problem:
                yield Finding("plugin", "warning", plugin.problem, plugin.name, "klaw plugins")
        if any(configured.retriever.needs_vectors for configured in self.assembly.retrievers):
            yield from guarded("model", "memory.embedding", self._check_model)

    def _check_model(self) -> Iterator[Finding]:
        yield from check_model(self.assembly.embedder)

    def _check_indexes(self, name: str) -> Iterator[Finding]:
        collection = self._collection(name)
        yield from check_indexes(collection)
        yield from check_space(collection)

    def _check_sources(self, name: str) -> Iterator[Finding]:
        try:
            sources = self.sources[name]()
            collection = self._collection(name)
            yield from check_origins(collection, sources)
            indexer = self._indexer(collection)
        except KlawError as error:
            yield Finding("sources", "error", error.message, name, error.hint)
            return
        for source in sources:
            yield from guarded("source", source.origin, check_source, source, indexer)

    def _mend(self, found: Sequence[Finding]) -> None:
        """Mend what can be; what fails is found again by the second examination."""
        _attempt(mend_owned, self.assembly.config.data_dir)
        _attempt(partial(self.assembly.store.check, fix=True))
        _attempt(mend_rows, self.row_sync, found)
        for name in self.sources:
            _attempt(self._refill, name)
            _attempt(self._synchronise, name, found)

    def _refill(self, name: str) -> None:
        """Empty the indexes that are damaged, and give every index exactly the chunks there are."""
        collection = self._collection(name)
        for index in damaged_indexes(collection):
            _attempt(self._empty, index, name)
        collection.backfill(EmbeddingRun())

    def _empty(self, index: Index[Any], name: str) -> None:
        with self.assembly.store.write() as transaction:
            record = transaction.space(name)
            space = record.space if record is not None and index.needs_vectors else None
            index.reset(transaction.resource, name, space)

    def _synchronise(self, name: str, found: Sequence[Finding]) -> None:
        """Bring the index up to date with the sources that it does not agree with.

        Saved memories stay as they are while their journal has broken lines: the index may be all that is left of them.
        """
        sources, collection = self.sources[name](), self._collection(name)
        remove_unknown_origins(collection, sources)
        outdated = {finding.where for finding in found if finding.check in _OUTDATED}
        broken = any(finding.check == "saved-lines" for finding in found)
        indexer = self._indexer(collection)
        for source in sources:
            if source.origin in outdated and not (broken and source.origin == SAVED):
                _attempt(indexer.sync, source)

    def _indexer(self, collection: Collection) -> Indexer:
        return Indexer(collection, self.assembly.chunker_of)

    def _collection(self, name: str) -> Collection:
        return self.assembly.collection(name)


def diagnose_unopened(data_dir: Path, error: KlawError) -> Diagnosis:
    """Return what can be said of a memory that cannot be opened: why not, and how the files a person owns are."""
    reason = Finding("open", "error", error.message, str(data_dir), error.hint)
    return diagnosis([reason, *guarded("files", str(data_dir), check_owned, data_dir)])


def diagnosis(findings: Iterable[Finding]) -> Diagnosis:
    """Return the findings, the worst first."""
    return Diagnosis(tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity))))


def _attempt(mend: Callable[..., object], *values: Any) -> None:
    """Mend one thing. What a plugin or a file system raises is dropped: the second examination says what is left."""
    with suppress(Exception, SystemExit):
        mend(*values)


def guarded(check: str, where: str, look: Callable[..., Iterable[Finding]], *values: Any) -> list[Finding]:
    """Return what a check finds; a check that fails is a finding too, so that the others go on."""
    found: list[Finding] = []
    try:
        for finding in look(*values):
            found.append(finding)  # noqa: PERF402  # one by one, so that what came before an error stays
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin's, or a file system's
        problem = as_klaw_error(error)
        found.append(Finding(check, "error", f"it could not be examined: {problem.message}", where, problem.hint))
    return found
