"""List all models with their locations, and verify their files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

from attrs import frozen

from klaw_core import KlawError
from klaw_models.cache import ModelCache
from klaw_models.kinds import CrossEncoderManifest, EmbedderManifest
from klaw_models.known import KNOWN
from klaw_models.manifest import ModelManifest
from klaw_models.places import GROUP, cache_directory, locate, missing
from klaw_models.reading import read_manifest

INSTALLED, CACHED, REMOTE = "package", "cache", "download"


@frozen
class Entry:
    """A model in the list.

    ``where`` is ``package``, ``cache`` or ``download``; ``directory`` is None for the last. ``pinned``: Klaw has the
    hashes of the files; otherwise they are only in the manifest next to them. ``size`` is in bytes. ``problem`` is the
    reason why the model cannot be used.
    """

    name: str
    where: str
    directory: Path | None = None
    kind: str = ""
    dimension: int | None = None
    window_tokens: int | None = None
    languages: str = ""
    license: str = ""
    size: int | None = None
    pinned: bool = False
    problem: str = ""


def inventory(cache_dir: Path) -> list[Entry]:
    """Return every known, installed or cached model, by name."""
    cached = ModelCache(cache_dir).names()
    names = {*KNOWN, *entry_points(group=GROUP).names, *cached}
    return [_entry(name, cache_dir) for name in sorted(names, key=str.lower)]


def _entry(name: str, cache_dir: Path) -> Entry:
    try:
        directory = locate(name, cache_dir)
    except KlawError as error:
        return Entry(name, INSTALLED, problem=str(error))
    if directory is None:
        return _remote(name)
    where = CACHED if directory == cache_directory(name, cache_dir) else INSTALLED
    try:
        manifest = read_manifest(directory)
    except KlawError as error:
        return Entry(name, where, directory, problem=str(error))
    known = KNOWN.get(name)
    embedder = manifest if isinstance(manifest, EmbedderManifest) else None
    return Entry(
        name,
        where,
        directory,
        kind=manifest.KIND,
        dimension=embedder.dimension if embedder else None,
        window_tokens=manifest.window_tokens if isinstance(manifest, EmbedderManifest | CrossEncoderManifest) else None,
        languages=manifest.languages or (known.languages if known else ""),
        license=manifest.license,
        size=sum(record.size or 0 for record in manifest.files.values()) or None,
        pinned=known is not None and manifest.revision == known.revision,
    )


def _remote(name: str) -> Entry:
    known = KNOWN.get(name)
    if known is None:
        return Entry(name, INSTALLED, problem=f"a package registers {name}, but its files are missing")
    return Entry(
        name,
        REMOTE,
        kind=known.kind,
        dimension=known.settings.get("dimension"),
        window_tokens=known.settings.get("window_tokens"),
        languages=known.languages,
        license=known.license,
        size=known.size,
        pinned=True,
    )


def verify(names: Sequence[str], cache_dir: Path) -> dict[str, list[str]]:
    """Return the problems of each of these models, or of all models on this machine. Raise ModelNotFoundError."""
    here = {entry.name: entry for entry in inventory(cache_dir) if entry.where != REMOTE}
    for name in names:
        if name not in here:
            raise missing(name)
    return {name: _problems(here[name]) for name in names or here}


def _problems(entry: Entry) -> list[str]:
    return [entry.problem] if entry.directory is None else [str(error) for error in problems_of(entry.directory)]


def problems_of(directory: Path) -> list[KlawError]:
    """Hash every file of a model; return its problems. A known model is also compared with the hashes in Klaw."""
    try:
        manifest = read_manifest(directory)
    except KlawError as error:
        return [error]
    problems: list[KlawError] = list(_unpinned(manifest))
    for file in manifest.files:
        try:
            manifest.check(file)
        except KlawError as error:
            problems.append(error)
    return problems


def _unpinned(manifest: ModelManifest) -> list[KlawError]:
    """Return the differences between the manifest of a known model and the hashes in Klaw."""
    known = KNOWN.get(manifest.name)
    if known is None or manifest.revision != known.revision:
        return []
    return [
        manifest.corrupt(f"{manifest.directory}: the manifest does not have the known SHA-256 of {file.name}")
        for file in known.files
        if file.name not in manifest.files or manifest.files[file.name].sha256 != file.sha256
    ]
