"""``klaw doctor``: run all checks, and fix what can be fixed without losing data.

After a fix all checks run again. A finding counts as fixed if the second run no longer reports it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from attrs import evolve, frozen

from klaw_core import CheckedExtension, Config, Extension, Finding, Index, KlawError, StatusExtension
from klaw_core.assembly import Assembly
from klaw_core.embedding.run import EmbeddingRun
from klaw_core.errors import as_klaw_error
from klaw_core.extensions.host import Extensions, build_extensions, having
from klaw_core.indexing.backfill import Backfill
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.plugins.registry import Registry
from klaw_core.sources.catalogue import Sources
from klaw_doctor.checks.indexes import check_indexes, check_model, check_space, damaged_indexes
from klaw_doctor.checks.language_model import check_language_model
from klaw_doctor.checks.sources import check_origins, check_source, remove_unknown_origins
from klaw_doctor.diagnosis import Diagnosis
from klaw_doctor.directories import check_directory, make_directory_private

_WORST_FIRST = ("error", "warning", "note")
_OUTDATED = {"stale", "ghosts", "never-indexed"}
#: The store's check for damaged chunk rows. After the store has fixed them, their documents count as changed.
_DAMAGED = "damaged-chunks"


@frozen(eq=False)
class Doctor:
    """Checks a memory: its store, indexes, sources, extensions with their files, and plugins."""

    assembly: Assembly
    sources: Sources
    extensions: Extensions

    def run(self, *, fix: bool = False) -> Diagnosis:
        """Run all checks; with ``fix`` also fix what is safe to fix. This reads every document and database page."""
        found = self._run_checks()
        if not fix or not found:
            return diagnosis(found)
        self._fix(found)
        left = evolve(self, sources=self.sources.again()).run().findings
        remaining = {(finding.check, finding.where) for finding in left}
        fixed = [evolve(item, fixed=True) for item in found if (item.check, item.where) not in remaining]
        return diagnosis([*left, *fixed])

    def _run_checks(self) -> list[Finding]:
        directory = self.assembly.config.data_dir
        findings = guarded("permissions", str(directory), check_directory, directory)
        findings += guarded("store", self.assembly.store.location, self.assembly.store.check)
        findings += check_extensions(self.extensions.all())
        for name, telling in self.extensions.having(StatusExtension):
            findings += guarded("extension", name, _ask, telling)
        for name, error in self.extensions.problems().items():
            findings.append(Finding("extension", "error", error.message, name, error.hint or "klaw plugins"))
        findings += self._check_components()
        for name in self._collections():
            findings += guarded("index", name, self._check_indexes, name)
            findings += self._check_sources(name)
        return findings

    def _collections(self) -> Sequence[str]:
        try:
            return self.sources.collections()
        except KlawError:  # reported by the check of the sources; the collections in the store can still be checked
            with suppress(KlawError), self.assembly.store.read() as snapshot:  # reported by the check of the store
                return snapshot.collections()
            return ()

    def _check_components(self) -> Iterator[Finding]:
        for configured in self.assembly.retrievers:
            if configured.problem:
                what = f"disabled: {configured.problem}"
                yield Finding("retriever", "error", what, configured.name, "klaw plugins")
            elif configured.limitation:
                yield Finding("retriever", "warning", f"it {configured.limitation}", configured.name)
        for error in self.assembly.unusable:
            yield Finding("component", "error", error.message, "", error.hint or "klaw plugins")
        for plugin in self.assembly.registry.whole.plugins:
            if plugin.problem:
                yield Finding("plugin", "warning", plugin.problem, plugin.name, "klaw plugins")
        if any(configured.retriever.needs_vectors for configured in self.assembly.retrievers):
            yield from guarded("model", "memory.embedding", self._check_model)
        yield from guarded("language-model", "memory.language_model", check_language_model, self.assembly)

    def _check_model(self) -> Iterator[Finding]:
        yield from check_model(self.assembly.embedder)

    def _check_indexes(self, name: str) -> Iterator[Finding]:
        collection = self.assembly.collection(name)
        yield from check_indexes(collection)
        yield from check_space(collection)

    def _check_sources(self, name: str) -> Iterator[Finding]:
        try:
            sources = self.sources.of(name)
            known, kept = self._origins(name)
            reserved, broken = self.sources.reserved, self.sources.broken()
            yield from check_origins(self.assembly.collection(name), known, reserved, broken, kept)
            indexer = self.assembly.indexer(name)
        except KlawError as error:
            yield Finding("sources", "error", error.message, name, error.hint)
            return
        for source in sources:
            if (problem := self.sources.machines.problem(source)) is not None:
                yield Finding("name-taken", "warning", problem.message, source.origin, problem.hint)
                continue
            yield from guarded("source", source.origin, check_source, source, indexer)

    def _origins(self, name: str) -> tuple[set[str], set[str]]:
        """Return the origins with documents in a collection: of sources, here or elsewhere, and those of none."""
        machines = self.sources.machines
        elsewhere = (origin for origin, collection in machines.elsewhere() if collection == name)
        unrecorded = {origin for origin, collection in machines.unrecorded() if collection == name}
        return {*(source.origin for source in self.sources.of(name)), *elsewhere}, unrecorded

    def _fix(self, found: Sequence[Finding]) -> None:
        """Try every fix; the second run of the checks reports what could not be fixed."""
        _attempt(make_directory_private, self.assembly.config.data_dir)
        _attempt(partial(self.assembly.store.check, fix=True))
        for _, extension in self.extensions.having(CheckedExtension):
            _attempt(extension.fix, found)
        for name in self._collections():
            _attempt(self._refill, name)
            _attempt(self._synchronise, name, found)

    def _refill(self, name: str) -> None:
        """Empty damaged indexes, then add missing chunks to every index and remove stale ones."""
        collection = self.assembly.collection(name)
        for index in damaged_indexes(collection):
            _attempt(self._empty, index, name)
        Backfill(collection, EmbeddingRun()).fill()

    def _empty(self, index: Index[Any], name: str) -> None:
        with self.assembly.store.write() as transaction:
            record = transaction.space(name)
            space = record.space if record is not None and index.needs_vectors else None
            index.reset(transaction.resource, name, space)

    def _synchronise(self, name: str, found: Sequence[Finding]) -> None:
        """Index the sources for which the checks found differences."""
        sources, collection = self.sources.of(name), self.assembly.collection(name)
        if not self.sources.broken():
            known, kept = self._origins(name)
            remove_unknown_origins(collection, known | kept | self.sources.reserved)
        outdated = {finding.where for finding in found if finding.check in _OUTDATED}
        damaged = any(finding.check == _DAMAGED for finding in found)
        for source in sources:
            if damaged or source.origin in outdated:
                _attempt(self._sync, source)

    def _sync(self, source: IsolatedSource) -> None:
        indexer, run = self.sources.indexer(source), EmbeddingRun()
        indexer.write(source, run)
        indexer.embed(run)


def check_extensions(extensions: Mapping[str, Extension]) -> Iterator[Finding]:
    """Run the checks of every extension."""
    for name, extension in having(extensions, CheckedExtension):
        yield from guarded("extension", name, extension.check)


def _ask(telling: StatusExtension) -> Iterable[Finding]:
    """Ask for the status values, which ``klaw status`` leaves out if this fails."""
    telling.status()
    return ()


def diagnose_unopened(config: Config, registry: Registry, error: KlawError) -> Diagnosis:
    """Return the diagnosis of a memory that cannot be opened: the error, and the findings of the extensions."""
    reason = Finding("open", "error", error.message, str(config.data_dir), error.hint)
    extensions, _failed = build_extensions(config, registry)
    return diagnosis([reason, *check_extensions(extensions)])


def diagnosis(findings: Iterable[Finding]) -> Diagnosis:
    """Return the findings, the most severe first."""
    return Diagnosis(tuple(sorted(findings, key=lambda finding: _WORST_FIRST.index(finding.severity))))


def _attempt(fix: Callable[..., object], *values: Any) -> None:
    """Try one fix. Errors are ignored: the second run of the checks reports what is still wrong."""
    with suppress(Exception, SystemExit):
        fix(*values)


def guarded(check: str, where: str, look: Callable[..., Iterable[Finding]], *values: Any) -> list[Finding]:
    """Return the findings of a check. An error becomes a finding too, so that the other checks still run."""
    found: list[Finding] = []
    try:
        for finding in look(*values):
            found.append(finding)  # noqa: PERF402  # one by one: keeps the findings before an error
    except (Exception, SystemExit) as error:  # noqa: BLE001  # a plugin or a file system may raise anything
        problem = as_klaw_error(error)
        found.append(Finding(check, "error", f"the check failed: {problem.message}", where, problem.hint))
    return found
