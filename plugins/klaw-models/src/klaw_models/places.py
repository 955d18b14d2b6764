"""Where a model is found: a path, an installed model package, or the cache of models."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import TypeVar

from klaw_core import ModelNotFoundError, PluginConflictError
from klaw_models.known import KNOWN
from klaw_models.manifest import MANIFEST, ModelManifest
from klaw_models.reading import read_manifest

#: Entry points of this group name a model; their value is the package that holds its ``model.json``.
GROUP = "klaw.models"

M = TypeVar("M", bound=ModelManifest)


def find_model(kind: type[M], name: str, path: str | None, cache_dir: Path) -> M:
    """Return the manifest of the model at ``path``, or else of the first place that has ``name``.

    The places are the installed model packages, then ``cache_dir / "models" / name``. Reads the manifest
    only, and fetches nothing. Raise ModelNotFoundError, which names the command that brings the model;
    ModelCorruptError for a manifest that cannot be used; PluginConflictError if two packages bring the model.
    """
    directory = _at_path(kind, path) if path is not None else locate(name, cache_dir)
    if directory is None:
        raise missing(name)
    manifest = read_manifest(directory)
    if not isinstance(manifest, kind):
        section, component = manifest.RUN_BY
        raise ModelNotFoundError(
            f"{manifest.name} is a model of the kind {manifest.KIND}, and {kind.KIND} is needed here",
            hint=f'{section}.type = "{component}" runs it',
        )
    return manifest


def locate(name: str, cache_dir: Path) -> Path | None:
    """Return the first directory that holds the model's manifest, or None. Raise PluginConflictError."""
    installed = entry_points(group=GROUP).select(name=name)
    places = [package_directory(point) for point in _only(installed, name)]
    places.append(cache_directory(name, cache_dir))
    return next((place for place in places if place and (place / MANIFEST).is_file()), None)


def cache_directory(name: str, cache_dir: Path) -> Path | None:
    """Return where a model of that name is in the cache; None for a name that would lead out of it."""
    relative = PurePath(name)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in name:
        return None
    return cache_dir / "models" / relative


def package_directory(point: EntryPoint) -> Path | None:
    """Return the package's directory without importing it; None if it is registered but gone."""
    try:
        spec = find_spec(point.module)
    except (ImportError, ValueError):
        return None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def _at_path(kind: type[ModelManifest], path: str) -> Path:
    directory = Path(path).expanduser()
    if not (directory / MANIFEST).is_file():
        raise ModelNotFoundError(
            f"no {MANIFEST} in {directory}", hint=f"set {kind.RUN_BY[0]}.path to a model's directory"
        )
    return directory


def _only(points: EntryPoints, name: str) -> EntryPoints:
    """Return the points of one name if one distribution registers them. Raise PluginConflictError."""
    owners = sorted({point.dist.name for point in points if point.dist is not None})
    if len(owners) > 1:
        raise PluginConflictError(
            f"the model {name} is in more than one package: {', '.join(owners)}",
            hint=f"pip uninstall {owners[-1]}, or set `path` to a model's directory",
        )
    return points


def missing(name: str) -> ModelNotFoundError:
    """Return the error for a model that is nowhere on this machine, with the command that brings it."""
    if known := KNOWN.get(name):
        fetch = f"klaw models add {name}"
        return ModelNotFoundError(
            f"the model {name} is not on this machine",
            hint=f"pip install '{known.extra}', or {fetch}" if known.extra else fetch,
        )
    return ModelNotFoundError(f"no model {name!r} on this machine", hint="klaw models list shows those there are")
