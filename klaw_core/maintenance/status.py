"""What is indexed, with what, and what does not work: for ``klaw status``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from klaw_core.assembly import Parts
from klaw_core.embedding.run import ALL_ANEW, require_same_space
from klaw_core.errors import EmbeddingError, PluginError, VectorSpaceError, contained, reason
from klaw_core.indexing.reconcile import compare
from klaw_core.interfaces.store import Snapshot
from klaw_core.sources.catalogue import Sources
from klaw_core.values.runs import Status
from klaw_core.values.text import COLLECTIONS
from klaw_core.values.vectors import SpaceRecord


def take_status(parts: Parts, sources: Sources) -> Status:
    """Look at everything without changing it. Servers that embed are asked whether they answer; no note is sent."""
    with parts.store.read() as snapshot:
        records = {name: record for name in COLLECTIONS if (record := snapshot.space(name)) is not None}
    embedding = tuple(_embedder_problems(parts, records))  # may ask a server, so no snapshot is held
    # Of another model than the index: what it lacks is made with all the rest, or not at all.
    embed = "klaw reindex" if any(ALL_ANEW in problem for problem in embedding) else "klaw embed"
    with parts.store.read() as snapshot:
        counts = {each: snapshot.counts(each) for each in COLLECTIONS}
        indexes = tuple(_index_problems(parts, snapshot, embed))
    workspaces = sources.workspaces.all()
    embedder = parts.embedder.name() if parts.config.embedding.type != "none" else ""
    return Status(
        location=parts.store.location,
        embedder=embedder or parts.config.embedding.type,
        space=next((record.space for record in records.values()), None),
        retrievers=tuple(leg.name for leg in parts.legs if not leg.problem),
        fusion=parts.config.fusion.type,
        origins={name: value for each in counts.values() for name, value in each.items()},
        collections={
            **{name: workspace.collection for name, workspace in workspaces.items()},
            **{name: collection for collection, each in counts.items() for name in each},
        },
        workspaces={name: str(workspace.root) for name, workspace in workspaces.items()},
        excluded={name: len(workspace.exclude) for name, workspace in workspaces.items() if workspace.exclude},
        statistics=parts.store.statistics(),
        problems=(
            *(f"{leg.name} is off: {leg.problem}" for leg in parts.legs if leg.problem),
            *embedding,
            *(f"plugin {item.name}: {item.problem}" for item in parts.registry.whole.plugins if item.problem),
            *(f"{name}/ has no source any more: `klaw forget {name}/`" for name in sorted(sources.strays())),
            *indexes,
        ),
    )


def _index_problems(parts: Parts, snapshot: Snapshot[Any], embed: str) -> Iterator[str]:
    """Say which indexes lack chunks, and which cannot tell; ``embed`` is the command that makes missing vectors."""
    for name, index in parts.indexes():
        mend = embed if index.needs_vectors else "klaw index"
        try:
            with contained(f"{name} cannot say what it holds"):
                found = [compare(snapshot, each, index) for each in COLLECTIONS]
        except PluginError as error:
            yield str(error)
            continue
        if missing := sum(len(each.missing) for each in found):
            yield f"{name} lacks {missing:,} {'chunk' if missing == 1 else 'chunks'}: run `{mend}`"
        if lagging := sum(len(each.lagging) for each in found):
            yield f"{name} finds {lagging:,} {'chunk' if lagging == 1 else 'chunks'} more slowly: run `{mend}`"


def _embedder_problems(parts: Parts, records: Mapping[str, SpaceRecord]) -> Iterator[str]:
    """Say which embedders do not work, and in which collections vector search is paused."""
    if not any(leg.retriever.needs_vectors for leg in parts.legs):
        return
    embedder = parts.embedder
    try:
        space = embedder.space
        yield from embedder.problems()
    except (EmbeddingError, PluginError) as error:
        paused = "vector search is paused" if records else "nothing is embedded"
        yield f"{paused}: embedder {parts.config.embedding.type}: {error}"
    except Exception as error:  # noqa: BLE001  # an embedder may raise anything
        yield f"embedder {parts.config.embedding.type}: {reason(error)}"
    else:
        for name, record in records.items():
            try:
                require_same_space(record, space, name)
            except VectorSpaceError as error:
                yield f"vector search is paused: {error}"
