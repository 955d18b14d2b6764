"""Metadata of documents: named values that searches can filter by."""

from __future__ import annotations

import math
import operator as operators
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args
from unicodedata import normalize

from attrs import field, frozen

from klaw_core.errors import QueryError, RecordError, quoted

#: One value of metadata. A tuple holds several strings, such as tags.
MetadataValue: TypeAlias = str | int | float | bool | tuple[str, ...]

#: Metadata by key. Values of one document; :func:`check_metadata` says what is allowed.
Metadata: TypeAlias = Mapping[str, MetadataValue]

#: ``in`` compares with any of several values; ``!=`` also holds where the key is missing.
Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">=", "in"]

OPERATORS: tuple[str, ...] = get_args(Operator)
#: The classes of writers, from the most trusted to the least, and the reserved key of a document's class.
TRUST_CLASSES = ("owner", "agent", "foreign")
TRUST = "klaw.trust"
_RESERVED = "klaw."
MAX_KEYS = 64
MAX_KEY_CHARACTERS = 100
MAX_VALUE_CHARACTERS = 10_000
_MAX_INTEGER = 2**63
_ORDERS = {"<": operators.lt, "<=": operators.le, ">": operators.gt, ">=": operators.ge}
_SLASH = re.compile(r"(?<=[^/])/")  # of a tag: what is before it is above
# A finite number of YAML 1.2's core schema (https://yaml.org/spec/1.2.2/#103-core-schema), or TOML's `1_000` or `0b1`.
_NUMBER = re.compile(r"[-+]?(?=\.?[0-9])(?:_?[0-9])*(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+")
# Python refuses to parse an integer with more digits than some thousands; none that is so long fits into a store.
_MAX_NUMBER_CHARACTERS = 100


@frozen
class Condition:
    """A condition on the metadata of documents: only chunks of documents that satisfy it are found.

    A tuple of strings satisfies a condition if one of its elements does (``!=``: if none is equal). Numbers and
    booleans compare with numbers and booleans (``True`` equals 1), strings with strings; values of different types are
    unequal and have no order. Strings are compared without the case of letters (``JavaScript`` is ``javascript``). One
    that is a number (``2700``, ``02700``, ``1.10``) compares as both, and one of a tuple with what is above it: the tag
    ``energy/heating`` is also ``energy``. ``value`` is a tuple for ``in`` and a single value otherwise. Raise
    QueryError for an operator or a value that does not exist.
    """

    key: str
    operator: Operator = field()
    value: str | int | float | bool | tuple[str | int | float | bool, ...] = field()

    @operator.validator
    def _check_operator(self, _attribute: Any, operator: str) -> None:
        if operator not in OPERATORS:
            raise QueryError(f"unknown operator {operator!r}", hint=f"one of {', '.join(OPERATORS)}")

    @value.validator
    def _check_value(self, _attribute: Any, value: object) -> None:
        values = value if isinstance(value, tuple) else (value,)
        if isinstance(value, tuple) != (self.operator == "in") or not all(map(is_single, values)):
            raise QueryError(
                f"cannot filter {self.key!r} by {quoted(value)}", hint="give a string, a number or a boolean"
            )

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """Return the value, or the several ones of ``in``, in the form of :meth:`compared`."""
        return tuple(map(_folded, self.value if isinstance(self.value, tuple) else (self.value,)))

    def holds(self, metadata: Metadata) -> bool:
        """Return whether metadata satisfies the condition. This is the definition that stores implement."""
        found, values, compare = metadata.get(self.key), self.values, _ORDERS.get(self.operator, operators.eq)
        own: tuple[Any, ...] = () if found is None else self.compared(found)
        pairs = ((item, value) for item in own for value in values if isinstance(item, str) == isinstance(value, str))
        return any(compare(item, value) for item, value in pairs) != (self.operator == "!=")

    @staticmethod
    def compared(value: MetadataValue) -> tuple[str | int | float | bool, ...]:
        """Return the values that a value of metadata is compared as, each once; stores keep them for filters."""
        items: tuple[Any, ...] = value if isinstance(value, tuple) else (value,)
        numbers = (number_of(item) for item in items if isinstance(item, str))
        above = (item[: mark.start()] for item in items if isinstance(value, tuple) for mark in _SLASH.finditer(item))
        texts = map(_folded, (*items, *above))
        return tuple(dict.fromkeys((*texts, *(number for number in numbers if number is not None))))


def check_metadata(metadata: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return metadata with lists of strings as tuples. Raise RecordError for invalid metadata."""
    if len(metadata) > MAX_KEYS:
        raise RecordError(f"the metadata has {len(metadata)} keys; the limit is {MAX_KEYS}")
    return {_checked_key(key): _checked_value(key, value) for key, value in metadata.items()}


def metadata_part(values: Mapping[str, Any]) -> dict[str, MetadataValue]:
    """Return those values of another program's metadata that a document's metadata can contain; leave out the others.

    Store objects, null, mixed lists and long values in a document's ``payload`` instead.
    """
    found: dict[str, MetadataValue] = {}
    for key, value in values.items():
        with suppress(RecordError):
            found.update(check_metadata({key: value}))
    return dict([*found.items()][:MAX_KEYS])


def _checked_key(key: Any) -> str:
    if not isinstance(key, str) or not key or len(key) > MAX_KEY_CHARACTERS or not key.isprintable():
        raise RecordError(f"invalid metadata key {quoted(key)}: use a line of {MAX_KEY_CHARACTERS} characters at most")
    if key.startswith(_RESERVED):
        raise RecordError(f"invalid metadata key {quoted(key)}: only Klaw writes keys that begin with {_RESERVED}")
    return key


def with_trust(metadata: Metadata, trust: str) -> Metadata:
    """Return the metadata of a document with its class and without other reserved keys; the owner's has none."""
    kept = {key: value for key, value in metadata.items() if not key.startswith(_RESERVED)}
    return kept if trust == "owner" else {**kept, TRUST: trust}


def _checked_value(key: str, value: Any) -> MetadataValue:
    result: MetadataValue = tuple(value) if isinstance(value, list | tuple) else value
    texts = result if isinstance(result, tuple) else (result,) if isinstance(result, str) else ()
    if not all(isinstance(item, str) for item in texts):
        raise RecordError(f"metadata {key!r}: expected strings in the list, got {quoted(value)}")
    if not isinstance(result, tuple) and not is_single(result):
        raise RecordError(f"metadata {key!r}: expected a string, a number, a boolean or a list of strings")
    if sum(map(len, texts)) > MAX_VALUE_CHARACTERS or any(map(has_surrogates, texts)):
        most = f"{MAX_VALUE_CHARACTERS:,} characters of valid Unicode at most"
        raise RecordError(f"metadata {key!r}: a value may have {most}")
    return result


def is_single(value: object) -> bool:
    """Return whether a value can be a value of metadata that is no list, or one in a condition."""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return -_MAX_INTEGER <= value < _MAX_INTEGER
    return isinstance(value, float) and math.isfinite(value)


def has_surrogates(text: str) -> bool:
    """Return whether the text contains a lone surrogate, which UTF-8 cannot encode."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def number_of(text: str) -> int | float | None:
    """Return the number that a text is in YAML or TOML; None if it is none, or too large for a store."""
    if len(text) > _MAX_NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        return None
    is_float = not set(".eE").isdisjoint(text) and text[:2] != "0x"
    number = float(text) if is_float else int(text, 0 if text[1:2].isalpha() else 10)
    return number if is_single(number) else None


def _folded(value: Any) -> Any:
    """Return a text as Unicode matches it without case (the core specification, section 3.13, D145)."""
    return normalize("NFD", normalize("NFD", value).casefold()) if isinstance(value, str) else value
