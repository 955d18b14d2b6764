"""Convert files to text: choose the converter, isolate its errors, check and cache its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any, Self

from attrs import define, evolve, frozen

from klaw_core import (
    ComponentContext,
    Conversion,
    ConversionError,
    Converter,
    KlawError,
    PluginContractError,
    check_metadata,
    quoted,
)
from klaw_core.errors import isolated
from klaw_core.values.text import text_hash
from klaw_notes.conversion_cache import ConversionCache
from klaw_redaction import Redactor


@frozen(eq=False)
class NamedConverter:
    """A converter and its name. ``recipe`` contains its options and version."""

    name: str
    converter: Converter
    recipe: str
    patterns: tuple[str, ...]
    on_request: bool = False
    max_bytes: int = 0

    @classmethod
    def of(cls, name: str, converter: Converter, options: object) -> NamedConverter:
        """Read a converter's patterns and version. Raise PluginError, PluginContractError."""
        who = f"the converter {name!r}"
        with isolated(who):
            patterns: Any = converter.patterns
            version: Any = converter.version
            on_request, max_bytes = bool(converter.on_request), converter.max_bytes
            patterns = (patterns,) if isinstance(patterns, str) else tuple(patterns)
        if not all(isinstance(pattern, str) and pattern for pattern in patterns):
            raise PluginContractError(
                f"{who} has the patterns {quoted(patterns)}, expected names of files such as '*.pdf'"
            )
        if not isinstance(version, str) or not isinstance(max_bytes, int):
            raise PluginContractError(f"{who} has a version that is not a string, or max_bytes that is not a number")
        lowered = tuple(pattern.lower() for pattern in patterns)
        return cls(name, converter, f"{name} {options!r} {version}", lowered, on_request, max_bytes)

    def convert(self, data: bytes, name: str) -> Conversion:
        """Convert a file, and check the result. Raise ConversionError, PluginError."""
        who = f"the converter {self.name!r}, reading {quoted(name)}"
        with isolated(who):
            made: Any = self.converter.convert(data, name)
        if problem := _problem(made):
            raise PluginContractError(f"{who}, returned {problem}")
        found: Conversion = made
        if not found.text.strip():
            raise ConversionError("is empty")
        return found


@define(eq=False, slots=False)
class Converters:
    """All installed converters, with the cache of their results. ``build`` is called for the first such file.

    If several converters match a file name, the first one is used. With a ``redactor``, converted texts have no
    secrets, so the cache has none either. The path of a document begins with the origin of its source.
    """

    build: Callable[[], Sequence[NamedConverter]]
    cache: ConversionCache
    redactor: Redactor | None = None

    @classmethod
    def of(cls, context: ComponentContext) -> Self:
        """Return the converters of a memory, from the context of a source or of a host."""
        cache = ConversionCache.of(context.cache_dir, context.data_dir)
        return cls(lambda: context.converters(NamedConverter.of), cache, context.redactor)

    @cached_property
    def all(self) -> Sequence[NamedConverter]:
        """All converters that work."""
        return self.build()

    @cached_property
    def _by_suffix(self) -> Mapping[str, NamedConverter]:
        found: dict[str, NamedConverter] = {}
        for item in self.all:
            for pattern in item.patterns:
                found.setdefault(pattern[1:] if _is_suffix(pattern) else "", item)
        return found

    def _of(self, name: str) -> NamedConverter | None:
        """Return the converter for a file name; None if there is none."""
        if not self.all:
            return None
        lowered = name.lower()
        suffix = PurePosixPath(lowered).suffix
        found = self._by_suffix.get(suffix) if suffix else None
        if "" not in self._by_suffix:
            return found
        matching = (item for item in self.all if any(fnmatch(lowered, pattern) for pattern in item.patterns))
        return next(matching, None)

    def reads(self, name: str, /, *, requested: bool = True) -> bool:
        """Return whether a file of this name is converted. ``requested`` says that the user has named such files."""
        found = self._of(name)
        return found is not None and (requested or not found.on_request)

    def recipe(self, name: str, /) -> str:
        """Return what determines the text of such a file apart from its bytes; empty if nothing converts it."""
        found = self._of(name)
        return "" if found is None else found.recipe

    def max_bytes(self, name: str, /) -> int:
        """Return the maximum size in bytes of such a file; 0 if its converter declares none."""
        found = self._of(name)
        return 0 if found is None else found.max_bytes

    def convert(self, path: str, data: bytes, /) -> Conversion:
        """Return the text of a file, from the cache if it was converted before. Raise ConversionError, PluginError."""
        name = path.rpartition("/")[2]
        found = self._of(name)
        if found is None:
            raise ConversionError("has no converter")
        digest = _digest(found.recipe if self.redactor is None else f"{found.recipe} {self.redactor.recipe}", data)
        if (kept := self.cache.get(path, digest)) is not None:
            return kept
        try:
            made = found.convert(data, name)
        except ConversionError as error:
            self.cache.put(path, digest, error)
            raise
        if not made.is_original:
            made = self._redacted(made)
            self.cache.put(path, digest, made)
        return made

    def _redacted(self, made: Conversion) -> Conversion:
        if self.redactor is None:
            return made
        return evolve(made, text=self.redactor.lines(made.text), metadata=self.redactor.metadata(made.metadata))


def _is_suffix(pattern: str) -> bool:
    """Return whether a pattern is a star and one suffix: ``*.pdf``, but not ``*.tar.gz`` or ``README*``."""
    return pattern.startswith("*.") and pattern.count(".") == 1 and not set(pattern[2:]) & set("*?[")


def _digest(recipe: str, data: bytes) -> str:
    from hashlib import sha256

    return text_hash(f"{recipe}\0{sha256(data).hexdigest()}")


def _problem(made: Any) -> str:
    """Return what is wrong with a converter's result; empty if nothing is."""
    if not isinstance(made, Conversion):
        return f"{type(made).__name__}, expected a Conversion"
    names: Any = (made.text, made.format)
    if not all(isinstance(name, str) for name in names) or not made.format:
        return "a text or a format that is not a string"
    moment: Any = made.created_at
    if moment is not None and not (isinstance(moment, datetime) and moment.tzinfo is not None):
        return "a created_at that is not a timezone-aware datetime"
    try:
        check_metadata(made.metadata)
        made.text.encode()
    except KlawError as error:
        return f"wrong metadata: {error.message}"
    except UnicodeEncodeError:
        return "a text that is not valid Unicode (an unpaired surrogate)"
    return ""
