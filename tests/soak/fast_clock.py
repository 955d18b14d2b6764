"""The command ``klaw`` under a wall clock that goes faster than the real one, for what the product reads it for.

    python tests/soak/fast_clock.py FACTOR BEGIN serve --port 0 …

``BEGIN`` is the real time, in seconds since 1970, at which both clocks agree, so that several processes have one time.
Timeouts and pauses are not faster: they are about the real machine. The times of files are the kernel's.

What Klaw remembers of texts and words is as old as the memory, too. Each of these caches has a bound, of up to 65,536
entries, and all together take up to 15 MB for the texts of a soak. With 64 clients they are full after hours, so a soak
of an hour would see them grow, and nothing else. Here each has at most ``KEPT`` entries, and is full soon.
"""

from __future__ import annotations

import datetime as dt
import functools
import sys
import time
from importlib import machinery
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

#: How many entries a cache of Klaw has at most.
KEPT = 128

_datetime, _lru_cache = dt.datetime, functools.lru_cache
#: Takes ``datetime.now`` as a default when it is imported, so it has to import another one.
_TAKES_AT_IMPORT = {"klaw_watch.nightly"}


class _Meta(type):
    def __instancecheck__(cls, other: object) -> bool:
        return isinstance(other, _datetime)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _datetime)


class _Loader(machinery.SourceFileLoader):
    """Gives each module of Klaw the fast clock."""

    fast: type

    def exec_module(self, module: ModuleType) -> None:
        at_import = module.__name__ in _TAKES_AT_IMPORT
        if at_import:
            dt.datetime = self.fast  # type: ignore[misc]
        try:
            super().exec_module(module)
        finally:
            if at_import:
                dt.datetime = _datetime  # type: ignore[misc]
        if module.__name__.startswith("klaw") and getattr(module, "datetime", None) is _datetime:
            module.datetime = self.fast  # type: ignore[attr-defined]


def _small_cache(maxsize: object = KEPT, typed: bool = False) -> object:  # noqa: FBT001, FBT002  # as it is called
    """Do what ``lru_cache`` does, for a module of Klaw with at most ``KEPT`` entries."""
    asks = sys._getframe(1).f_globals.get("__name__", "")  # there is no other way
    is_large = isinstance(maxsize, int) and maxsize > KEPT and asks.startswith("klaw")
    return _lru_cache(KEPT if is_large else maxsize, typed)  # type: ignore[call-overload]


def install(factor: float, begin: float) -> None:
    """Make the wall clock of this process go ``factor`` times as fast, from the moment ``begin`` on."""
    real, real_ns = time.time, time.time_ns

    def seconds() -> float:
        return begin + (real() - begin) * factor

    class Fast(_datetime, metaclass=_Meta):
        def __new__(cls, *parts: object, **more: object) -> dt.datetime:  # type: ignore[misc]
            """Return one of the real ones: libraries in C know no others."""
            return _datetime(*parts, **more)  # type: ignore[arg-type]

        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
            return _datetime.fromtimestamp(seconds(), tz)

    time.time = seconds
    time.time_ns = lambda: int(begin * 1e9 + (real_ns() - begin * 1e9) * factor)
    functools.lru_cache = _small_cache  # type: ignore[assignment]
    _Loader.fast = Fast
    # A finder for everything that a directory can have: the first one that accepts a directory is asked alone.
    kinds = (
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (_Loader, machinery.SOURCE_SUFFIXES),
        (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
    )
    sys.path_hooks.insert(0, machinery.FileFinder.path_hook(*kinds))
    sys.path_importer_cache.clear()


def main() -> None:
    """Run the command that the arguments name."""
    factor, begin = float(sys.argv[1]), float(sys.argv[2])
    sys.argv[0:3] = ["klaw"]
    install(factor, begin)
    from klaw_core.cli.startup import run
    from klaw_words import treatment

    treatment._MAX_UNCHANGED = KEPT

    run()


if __name__ == "__main__":
    main()
