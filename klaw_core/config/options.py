"""Convert a table to a component's options with cattrs: strictly, and with actionable errors.

Most tables set no options. cattrs is imported only for those that do, because the import takes as long as a search.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import attrs

from klaw_core.config.layers import join, shown
from klaw_core.config.load import nearest
from klaw_core.hookspecs import Component
from klaw_core.kinds import EXTENSION
from klaw_core.values.config import Selection

if TYPE_CHECKING:
    import cattrs

#: The metadata of an extension's option that says what an agent inherits: True, or the values that it inherits.
INHERITS = "agents"


def _strict(kind: type, *also: type) -> Any:
    def check(value: Any, _: Any) -> Any:
        if (isinstance(value, bool) and kind is not bool) or not isinstance(value, (kind, *also)):
            raise TypeError(f"expected {kind.__name__}, got {shown(value)}")
        return kind(value)

    return check


@cache
def _converter() -> cattrs.Converter:
    import cattrs

    converter = cattrs.Converter(forbid_extra_keys=True)
    # By default cattrs converts "8" to 8; a configuration must use the right type.
    for kind, check in {int: _strict(int), float: _strict(float, int), str: _strict(str), bool: _strict(bool)}.items():
        converter.register_structure_hook(kind, check)
    return converter


def build_options(component: Component[Any, Any], selection: Selection, problems: list[str]) -> Any:
    """Convert the selection's options to the component's attrs class.

    Problems are appended, not raised; None is returned if there were any.
    """
    options = None
    try:
        lacking = withheld(component, selection)
        given = {key: value for key, value in selection.options.items() if key not in lacking}
        fields = attrs.fields(component.options)
        if not given and all(field.default is not attrs.NOTHING for field in fields if field.init):
            return component.options()
        found = [
            *_no_arrays(given, component.options, selection.place),
            *_invalid_secrets(given, component.options, selection.place),
        ]
        if not found:
            options = _converter().structure(given, component.options)
    except (Exception, SystemExit) as error:  # noqa: BLE001  # an options class, its types and its validators are a plugin's
        found = _explain(error, selection.place)
    problems.extend(found)
    return options


def withheld(component: Component[Any, Any], selection: Selection) -> frozenset[str]:
    """Return the inherited options that an agent does not have: secret ones, and those an extension does not share.

    An extension shares an option by the metadata ``INHERITS`` of its field: True, or the values that an agent may have.
    """
    lacking = secret_options(component.options).intersection(selection.inherited)
    if selection.kind != EXTENSION.name:
        return lacking
    marks = {field.alias or field.name: field.metadata.get(INHERITS, ()) for field in attrs.fields(component.options)}
    inherited = ((key, marks.get(key, ())) for key in selection.inherited)
    return lacking.union(key for key, mark in inherited if mark is not True and selection.options[key] not in mark)


def _no_arrays(table: Mapping[str, Any], options: type, place: str) -> Iterator[str]:
    """Yield a problem for each value that should be an array; cattrs would split a string into letters."""
    kinds = get_type_hints(options)
    for key, value in table.items():
        kind = kinds.get(key, object)
        origin = get_origin(kind) or kind
        if attrs.has(origin) and isinstance(value, Mapping):
            yield from _no_arrays(value, origin, join(place, key))
        elif _is_array(origin) and not isinstance(value, list):
            items = "strings" if str in get_args(kind) else "values"
            yield f"{join(place, key)}: expected an array of {items}, got {shown(value)}"


def secret_options(options: type) -> frozenset[str]:
    """Return the keys of the secret options, which are never shown: the attrs fields with ``repr=False``.

    A secret is a string, or a table of secret strings (a field of type ``Mapping``).
    """
    return frozenset(field.alias or field.name for field in attrs.fields(options) if field.repr is False)


def _invalid_secrets(table: Mapping[str, Any], options: type, place: str) -> Iterator[str]:
    """Yield a problem for each secret of the wrong type; other messages would show its value."""
    kinds = get_type_hints(options)
    for key in sorted(secret_options(options) & table.keys()):
        here, value = join(place, key), table[key]
        if get_origin(kinds.get(key)) is not Mapping:
            if not isinstance(value, str):
                yield f"{here}: expected a string"
        elif not isinstance(value, Mapping):
            yield f"{here}: expected a table of strings"
        else:
            yield from (f"{join(here, name)}: expected a string" for name in value if not isinstance(value[name], str))


def _is_array(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, str | bytes | Mapping)


def _explain(error: BaseException, place: str) -> list[str]:
    from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

    if isinstance(error, ClassValidationError | IterableValidationError):
        grouped, ungrouped = error.group_exceptions()
        described = [message for inner, note in grouped for message in _explain(inner, _inner_place(place, note))]
        return described + [message for inner in ungrouped for message in _explain(inner, place)]
    if isinstance(error, ForbiddenExtraKeysError):
        known = tuple(field.name for field in attrs.fields(error.cl) if field.init)
        moved = getattr(error.cl, "moved", {})  # keys of earlier versions, each with the setting that replaced it
        told = {key: f"replaced by {moved[key]}" for key in error.extra_fields if key in moved}
        unknown = sorted(error.extra_fields)
        return [f"{join(place, key)}: {told.get(key) or f'unknown key{nearest(key, known)}'}" for key in unknown]
    if isinstance(error, KeyError):
        return [f"{place}: is required"]
    # The validators of attrs add the attribute, their argument and the value after the message; only show the message.
    return [f"{place}: {error.args[0] if error.args else type(error).__name__}"]


def _inner_place(place: str, note: Any) -> str:
    name = getattr(note, "name", None)
    return join(place, name) if name is not None else f"{place}[{getattr(note, 'index', '?')}]"
