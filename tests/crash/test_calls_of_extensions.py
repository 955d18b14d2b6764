"""What an extension holds ends with each public call that its class defines, whatever interrupts it."""

from collections.abc import Iterator
from functools import cached_property
from inspect import CO_COROUTINE, CO_GENERATOR
from types import FunctionType
from typing import Any

import pytest
from scenes import Home, make_registry

from klaw_core.holds import operation

_CODE = operation(lambda: None).__code__
#: They return at once, and what they hold is held by the block of their caller.
_BLOCKS = "contextlib.py"


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
        if not made.__code__.co_flags & (CO_GENERATOR | CO_COROUTINE) and _BLOCKS not in made.__code__.co_filename:
            yield f"{kind.__qualname__}.{name}"


def test_each_public_call_of_each_extension_is_an_operation(built):
    assert len(built) > 10
    assert [call for extension in built.values() for call in _ends_nothing(type(extension))] == []
