"""Find models: at a path, in an installed model package, or in the cache of models."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path, PurePath
from shlex import quote
from typing import TYPE_CHECKING, TypeVar

from klaw_core import ModelNotFoundError, PluginConflictError
from klaw_models.known import KNOWN
from klaw_models.manifest import MANIFEST, ModelManifest
from klaw_models.reading import read_manifest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

#: The group of entry points that register models; the value is the package with the ``model.json``.
GROUP = "klaw.models"

M = TypeVar("M", bound=ModelManifest)


def find_model(kind: type[M], name: str, path: str | None, cache_dir: Path) -> M:
    """Return the manifest of the model at ``path``, or of the first model with this ``name``.

    A name is searched for in the installed model packages, then in ``cache_dir / "models"``. Only the manifest is read,
    and nothing is downloaded. Raise ModelNotFoundError, which names the command that adds the model; ModelCorruptError
    for an invalid manifest; PluginConflictError if two packages have the model.
    """
    directory = _at_path(kind, path) if path is not None else locate(name, cache_dir)
    if directory is None:
        raise missing(name)
    manifest = read_manifest(directory)
    if not isinstance(manifest, kind):
        section, component = manifest.RUN_BY
        raise ModelNotFoundError(
            f"{manifest.name} is a model of kind {manifest.KIND}, expected {kind.KIND}",
            hint=f'{section}.type = "{component}" runs it',
        )
    return manifest


def locate(name: str, cache_dir: Path) -> Path | None:
    """Return the first directory with the manifest of the model, or None. Raise PluginConflictError."""
    modules = list(_registered(name))
    if len(modules) != 1:  # none, one that is not in a plain directory, or a conflict
        from importlib.metadata import entry_points

        modules = [point.module for point in _only(entry_points(group=GROUP).select(name=name), name)]
    places = [package_directory(module) for module in modules]
    places.append(cache_directory(name, cache_dir))
    return next((place for place in places if place and (place / MANIFEST).is_file()), None)


def cache_directory(name: str, cache_dir: Path) -> Path | None:
    """Return the directory in the cache for a model of this name; None for a name that leads out of the cache."""
    relative = PurePath(name)
    if not relative.parts or relative.is_absolute() or ".." in relative.parts or "\0" in name:
        return None
    return cache_dir / "models" / relative


def package_directory(module: str) -> Path | None:
    """Return the package's directory without importing it; None if the package is registered but missing."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    locations = list(spec.submodule_search_locations or ()) if spec else []
    return Path(locations[0]) if locations else None


def _registered(name: str) -> Iterator[str]:
    """Yield the modules of the ordinarily installed packages that register a model.

    Importing and calling importlib.metadata instead would take a tenth of the time to load the model.
    """
    seen = set()
    for place in dict.fromkeys(sys.path):
        with suppress(OSError), os.scandir(place or os.curdir) as entries:
            for entry in entries:
                distribution = entry.name.partition("-")[0].lower()
                if (
                    entry.name.endswith(".dist-info") and distribution not in seen
                ):  # the first one on the path hides the others
                    seen.add(distribution)
                    yield from _points(f"{entry.path}/entry_points.txt", name)


def _points(file: str, name: str) -> Iterator[str]:
    """Yield the modules that an ``entry_points.txt`` registers for the model."""
    try:
        with open(file, encoding="utf-8") as lines:  # noqa: PTH123  # a hundred of them are read
            text = lines.read()
    except (OSError, UnicodeDecodeError):
        return
    _, found, section = text.partition(f"[{GROUP}]")
    if not found:
        return
    for line in section.partition("\n[")[0].splitlines():
        key, _, value = line.partition("=")
        if key.strip() == name:
            yield value.partition("[")[0].partition(":")[0].strip()


def _at_path(kind: type[ModelManifest], path: str) -> Path:
    directory = Path(path).expanduser()
    if not (directory / MANIFEST).is_file():
        raise ModelNotFoundError(
            f"no {MANIFEST} in {directory}", hint=f"set {kind.RUN_BY[0]}.path to a model's directory"
        )
    return directory


def _only(points: EntryPoints, name: str) -> EntryPoints:
    """Return the entry points for a name if only one distribution registers them. Raise PluginConflictError."""
    owners = sorted({point.dist.name for point in points if point.dist is not None})
    if len(owners) > 1:
        from klaw_core import uninstall_command

        raise PluginConflictError(
            f"several packages provide the model {name}: {', '.join(owners)}",
            hint=f"{uninstall_command(owners[-1])}, or set `path` to a model's directory",
        )
    return points


def missing(name: str) -> ModelNotFoundError:
    """Return the error for a model that is not on this machine, with the command that adds it."""
    if known := KNOWN.get(name):
        from klaw_core import install_extras

        fetch = f"klaw models add {quote(name)}"
        return ModelNotFoundError(
            f"the model {name} is not on this machine",
            hint=f"{install_extras([known.extra])}, or {fetch}" if known.extra else fetch,
        )
    return ModelNotFoundError(f"no model {name!r} on this machine", hint="klaw models list shows the available models")
