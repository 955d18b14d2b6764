"""``klaw models add``: download a model or copy its files into the cache."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TypeAlias

from attrs import frozen

from klaw_models.cache import ModelCache
from klaw_models.describing import ModelDescription, describe
from klaw_models.errors import ModelError
from klaw_models.fetching import (
    HUB,
    HUB_VARIABLE,
    Directory,
    FileSource,
    Hub,
    OnBytes,
    fill_copy,
    fill_described,
    fill_known,
)
from klaw_models.inventory import problems_of
from klaw_models.known import KNOWN, KnownModel
from klaw_models.manifest import MANIFEST
from klaw_models.places import locate
from klaw_models.reading import read_manifest

#: Shows the number of received bytes, given their total, during a block.
Bar: TypeAlias = Callable[[int], AbstractContextManager[OnBytes]]


@frozen
class AddResult:
    """A model that is on this machine now. ``changed`` is False if it was there before."""

    name: str
    directory: Path
    changed: bool = True


@frozen
class ModelAdder:
    """Downloads or copies models into the cache. ``hub_url`` may be a mirror."""

    cache_dir: Path
    bar: Bar
    offline: bool = False
    hub_url: str = HUB

    def fetch(self, name: str) -> AddResult:
        """Download a known model, unless it is here and undamaged. Raise KlawError."""
        known = KNOWN.get(name)
        if known is None:
            raise _unknown(name)
        here = locate(name, self.cache_dir)
        if here is not None:
            problems = problems_of(here)
            if not problems:
                return AddResult(name, here, changed=False)
            if here != self._cache.place(name):
                raise problems[0]  # in a package, which pip must repair
        if self.offline:
            raise ModelError(
                f"{name} cannot be downloaded while KLAW_OFFLINE is set",
                hint=f"add files that you have: klaw models add {name} --from DIRECTORY",
            )
        return self._known(known, self._hub())

    def take(self, name: str | None, path: Path, said: ModelDescription) -> AddResult:
        """Copy a model from local files: a known one, one with a manifest, or one that ``said`` describes.

        Raise KlawError; the cache is then unchanged.
        """
        if name is not None and name in KNOWN:
            if said != ModelDescription():
                raise ModelError(
                    f"Klaw already knows how to use {name}", hint="omit the options that describe the model"
                )
            return self._known(KNOWN[name], Directory(path))
        if (path / MANIFEST).is_file():
            if said != ModelDescription():
                raise ModelError(
                    f"{path / MANIFEST} already describes the model", hint="omit the options that describe the model"
                )
            manifest = read_manifest(path)
            if name not in {None, manifest.name}:
                raise ModelError(f"the model in {path} is {manifest.name!r}, not {name!r}", hint="omit the name")
            if manifest.name in KNOWN:
                return self._known(KNOWN[manifest.name], Directory(path))
            size = sum(record.size or 0 for record in manifest.files.values())
            return self._put(manifest.name, size, partial(fill_copy, manifest))
        if name is None:
            raise ModelError(
                f"no {MANIFEST} in {path}, so the model needs a name", hint="klaw models add NAME --from …"
            )
        files, content = describe(name, path, said)
        size = sum(file.stat().st_size for file in files.values())
        return self._put(name, size, partial(fill_described, files, content))

    def _known(self, known: KnownModel, source: FileSource) -> AddResult:
        return self._put(known.name, known.size, partial(fill_known, known, source))

    def _put(self, name: str, size: int, fill: Callable[[Path, OnBytes], None]) -> AddResult:
        place, here = self._cache.place(name), locate(name, self.cache_dir)
        if here not in {None, place}:
            raise ModelError(
                f"the package in {here} already provides {name} and takes precedence",
                hint="choose another name, or uninstall it",
            )
        with self.bar(size) as on_bytes:
            self._cache.put(name, lambda made: fill(made, on_bytes), size=size)
        return AddResult(name, place)

    @property
    def _cache(self) -> ModelCache:
        return ModelCache(self.cache_dir)

    def _hub(self) -> Hub:
        try:
            return Hub(self.hub_url)
        except ValueError as error:
            problem = str(error).removeprefix("base_url: ")
            raise ModelError(f"{HUB_VARIABLE}: {problem}", hint=f"unset {HUB_VARIABLE}, or name a mirror") from error


def _unknown(name: str) -> ModelError:
    near = get_close_matches(name.lower(), [known.lower() for known in KNOWN], n=1)
    meant = [known for known in KNOWN if known.lower() in near]
    guess = f"did you mean {meant[0]}? " if meant else ""
    return ModelError(
        f"unknown model {name!r}",
        hint=f"{guess}klaw models list shows the known models; --from PATH adds one that you have",
    )
