"""What an extension holds ends with each public call of it, whatever interrupts it."""

from collections.abc import Iterator
from functools import cached_property
from inspect import CO_COROUTINE, CO_GENERATOR, getmembers_static, ismemberdescriptor
from types import FunctionType
from typing import Any

import pytest
from scenes import Home, make_registry

from klaw_core.holds import operation

_CODE = operation(lambda: None).__code__
#: They return at once, and what they hold is held by the block of their caller.
_BLOCKS = "contextlib.py"
#: Objects that extensions offer, whose calls are no operations, and why.
NO_OPERATIONS = {
    "Converters": "holds nothing",
    "Redactor": "holds nothing",
    "Pointers": "holds nothing",
    "Recall": "holds nothing",
    "FileJournal": "its errors of the system are for the extension, which calls it",
    "HelperFiles": "its errors of the system are for the extension, which calls it",
    "FailureLog": "its errors of the system are for the extension, which calls it",
    "WatchDirectory": "its errors of the system are for the extension, which calls it",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = Home(tmp_path_factory.mktemp("home"), make_registry(), facts=True)
    home.data.mkdir()
    with home.open() as memory:
        yield memory.extensions.all()


def _function(value: Any) -> Any:
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return value.fget if isinstance(value, property) else getattr(value, "func", value)


def _ends_nothing(kind: type) -> Iterator[str]:
    for name, value in vars(kind).items():
        made = _function(value) if isinstance(value, cached_property | property | classmethod | staticmethod) else value
        if name.startswith("_") or not isinstance(made, FunctionType) or made.__code__ is _CODE:
            continue
        if getattr(made, "__isabstractmethod__", False):
            continue
        if not made.__code__.co_flags & (CO_GENERATOR | CO_COROUTINE) and _BLOCKS not in made.__code__.co_filename:
            yield f"{kind.__qualname__}.{name}"


def _bases(value: Any) -> list[type]:
    return [kind for kind in type(value).__mro__ if kind.__module__.startswith("klaw_")]


def _parts(extension: Any) -> Iterator[Any]:
    """Yield what the public properties of an extension return, of classes of plugins."""
    for name, value in getmembers_static(type(extension)):
        if not name.startswith("_") and (isinstance(value, cached_property | property) or ismemberdescriptor(value)):
            part = getattr(extension, name)
            if type(part).__module__.startswith("klaw_") and not type(part).__module__.startswith("klaw_core"):
                yield part


def test_each_public_call_of_each_extension_is_an_operation(built):
    assert len(built) > 10
    calls = {call for extension in built.values() for kind in _bases(extension) for call in _ends_nothing(kind)}
    assert calls == set()


def test_each_public_call_of_each_part_of_an_extension_is_an_operation(built):
    parts = [part for extension in built.values() for part in _parts(extension)]
    assert len(parts) > 10
    assert NO_OPERATIONS.keys() <= {type(part).__qualname__ for part in parts}
    kinds = {kind for part in parts if type(part).__qualname__ not in NO_OPERATIONS for kind in _bases(part)}
    assert {call for kind in kinds for call in _ends_nothing(kind)} == set()
