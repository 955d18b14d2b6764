"""Collect the content of ``klaw status``: what is indexed, with which components, and what does not work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from shlex import quote
from typing import Any

from klaw_core.assembly import Assembly
from klaw_core.embedding.run import ALL_ANEW, require_same_space
from klaw_core.errors import EmbeddingError, KlawError, PluginError, VectorSpaceError, isolated, reason
from klaw_core.extensions.host import Extensions
from klaw_core.indexing.reconcile import compare
from klaw_core.interfaces.extension import StatusExtension
from klaw_core.interfaces.source import Folder
from klaw_core.interfaces.store import Snapshot
from klaw_core.plugins.isolation import IsolatedSource
from klaw_core.sources.catalogue import Sources
from klaw_core.sources.skipped import UNFINISHED, SkippedFiles
from klaw_core.values.runs import Status
from klaw_core.values.vectors import SpaceRecord


def take_status(assembly: Assembly, sources: Sources, extensions: Extensions) -> Status:
    """Return the status of a memory without changing it. Embedding servers are contacted, but no notes are sent."""
    with assembly.store.read() as snapshot:
        records = {name: record for name in snapshot.collections() if (record := snapshot.space(name)) is not None}
    embedding = tuple(_embedder_problems(assembly, records))  # may contact a server, so no snapshot is open
    # If the model differs from the index's, only a rebuild can add the missing vectors.
    embed = "klaw reindex" if any(ALL_ANEW in problem for problem in embedding) else "klaw embed"
    with assembly.store.read() as snapshot:
        counts = {each: snapshot.counts(each) for each in snapshot.collections()}
        indexes = tuple(_index_problems(assembly, snapshot, embed))
    model_rows, model_problems = _language_model(assembly)
    known = sources.all()
    roots = {source.origin: root for source in known if (root := source.root) is not None}
    skipped = SkippedFiles(assembly.config.data_dir).all()
    embedder = assembly.embedder.name() if assembly.config.embedding.type != "none" else ""
    return Status(
        location=assembly.store.location,
        embedder=embedder or assembly.config.embedding.type,
        space=next((record.space for record in records.values()), None),
        retrievers=tuple(configured.name for configured in assembly.retrievers if not configured.problem),
        fusion=assembly.config.fusion.type,
        origins=_by_origin(counts),
        collections=_collections(known, counts),
        workspaces={name: str(root) for name, root in roots.items()},
        excluded={
            source.origin: len(folder.exclude)
            for source in known
            if isinstance(folder := source.source, Folder) and folder.exclude
        },
        statistics={**_shown(extensions, assembly.store.statistics()), **model_rows},
        problems=(
            *(configured.complaint for configured in assembly.retrievers if configured.complaint),
            *embedding,
            *map(str, assembly.unusable),
            *model_problems,
            *(f"plugin {item.name}: {item.problem}" for item in assembly.registry.whole.plugins if item.problem),
            *(f"extension {name}: {error}" for name, error in extensions.problems().items()),
            *_orphaned_origins(sources),
            *(f"{item.path}: {item.reason}" for item in skipped.get(UNFINISHED, ())),
            *(str(problem) for source in known if (problem := sources.machines.problem(source)) is not None),
            *indexes,
        ),
        skipped={source.origin: skipped[source.origin] for source in known if source.origin in skipped},
        elsewhere=_elsewhere(sources),
    )


def _elsewhere(sources: Sources) -> dict[str, str]:
    """Return the places of the machines that index an origin which this one does not, by origin."""
    found: dict[str, list[str]] = {}
    for (origin, _), place in sources.machines.elsewhere().items():
        found.setdefault(origin, []).append(place)
    return {origin: ", ".join(places) for origin, places in found.items()}


def _orphaned_origins(sources: Sources) -> Iterator[str]:
    """Yield a problem for each indexed origin whose source no longer exists."""
    broken = ", or belongs to a plugin or extension that does not work" if sources.broken() else ""
    if not (strays := sources.strays()):
        return
    unrecorded = {origin for origin, _ in sources.machines.unrecorded()}
    for name in sorted(strays):
        machine = ", or belongs to a machine that has not indexed since it was updated" if name in unrecorded else ""
        yield f"{name}/ no longer has a source{broken}{machine}: `klaw forget {quote(name)}/` removes it"


def _collections(
    known: Sequence[IsolatedSource], counts: Mapping[str, Mapping[str, tuple[int, int]]]
) -> dict[str, tuple[str, ...]]:
    """Return the collections by origin: first those with indexed documents, then those that its sources name."""
    found: dict[str, dict[str, None]] = {}
    for collection, each in counts.items():
        for name in each:
            found.setdefault(name, {})[collection] = None
    for source in known:
        found.setdefault(source.origin, {})[source.collection] = None
    return {name: tuple(collections) for name, collections in found.items()}


def _shown(extensions: Extensions, known: Mapping[str, int | str]) -> Mapping[str, int | str]:
    """Return known values and those of the extensions. Failing ones are omitted; ``klaw doctor`` reports them."""
    shown = dict(known)
    for name, extension in extensions.having(StatusExtension):
        with suppress(KlawError), isolated(f"the extension {name!r}"):
            status = extension.status().items()
            shown |= {f"{name} {key}" if key in shown else key: value for key, value in status}
    return shown


def _language_model(assembly: Assembly) -> tuple[Mapping[str, int | str], Sequence[str]]:
    """Return the language model's status values and its problems, without requesting a completion."""
    try:
        with isolated("the language model"):
            model = assembly.language_model
            return ({} if model is None else model.status()), ()
    except KlawError as error:
        is_known = str(error) in map(str, assembly.unusable)
        return {}, () if is_known else (str(error),)


def _by_origin(counts: Mapping[str, Mapping[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    """Return (documents, chunks) by origin, summed over the collections."""
    found: dict[str, tuple[int, int]] = {}
    for each in counts.values():
        for name, (documents, chunks) in each.items():
            before = found.get(name, (0, 0))
            found[name] = (before[0] + documents, before[1] + chunks)
    return found


def _index_problems(assembly: Assembly, snapshot: Snapshot[Any], embed: str) -> Iterator[str]:
    """Yield the problems of the indexes; ``embed`` is the command that adds missing vectors."""
    for name, index in assembly.indexes():
        hint = embed if index.needs_vectors else "klaw index"
        try:
            with isolated(f"{name} cannot report its content"):
                found = [
                    compare(snapshot, each, index)
                    for each in snapshot.collections()
                    if index.key_digest(snapshot.resource, each) != snapshot.key_digest(each)  # to list keys takes long
                ]
        except PluginError as error:
            yield str(error)
            continue
        if missing := sum(len(each.missing) for each in found):
            yield f"{name} lacks {missing:,} {'chunk' if missing == 1 else 'chunks'}: run `{hint}`"
        if outdated := sum(len(each.outdated) for each in found):
            yield f"{name} has {outdated:,} {'chunk' if outdated == 1 else 'chunks'} in an earlier form: run `{hint}`"


def _embedder_problems(assembly: Assembly, records: Mapping[str, SpaceRecord]) -> Iterator[str]:
    """Yield the problems of the embedders, and the collections in which vector search is paused."""
    if not any(configured.retriever.needs_vectors for configured in assembly.retrievers):
        return
    embedder = assembly.embedder
    try:
        space = embedder.space
        yield from embedder.problems()
    except (EmbeddingError, PluginError) as error:
        paused = "vector search is paused" if records else "nothing is embedded"
        yield f"{paused}: embedder {assembly.config.embedding.type}: {error}"
    except Exception as error:  # noqa: BLE001  # an embedder may raise anything
        yield f"embedder {assembly.config.embedding.type}: {reason(error)}"
    else:
        for name, record in records.items():
            try:
                require_same_space(record, space, name)
            except VectorSpaceError as error:
                yield f"vector search is paused: {error}"
