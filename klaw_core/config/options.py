"""From a table to a component's options: cattrs, strict, with errors a person can act on."""

from typing import Any

import attrs
import cattrs
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError, IterableValidationError

from klaw_core.config.load import nearest
from klaw_core.config.model import Selection
from klaw_core.hookspecs import Component


def _strict(kind: type, *also: type) -> Any:
    def check(value: Any, _: Any) -> Any:
        if isinstance(value, bool) and kind is not bool:
            raise TypeError(f"expected {kind.__name__}, got {value!r}")
        if not isinstance(value, (kind, *also)):
            raise TypeError(f"expected {kind.__name__}, got {value!r}")
        return kind(value)

    return check


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(forbid_extra_keys=True)
    # cattrs converts ("8" to 8); a configuration should say what it means.
    for kind, check in {int: _strict(int), float: _strict(float, int), str: _strict(str), bool: _strict(bool)}.items():
        converter.register_structure_hook(kind, check)
    return converter


def build_options(component: Component[Any, Any], selection: Selection, problems: list[str]) -> Any:
    """Structure the selection's options as the component's attrs class; append problems instead of raising.

    Return None if there was a problem.
    """
    try:
        return _converter().structure(dict(selection.options), component.options)
    except (ClassValidationError, ValueError, TypeError) as error:
        problems.extend(_explain(error, selection.place, component.options))
        return None


def _explain(error: BaseException, place: str, options: type) -> list[str]:
    if isinstance(error, ClassValidationError | IterableValidationError):
        grouped, ungrouped = error.group_exceptions()
        described = [
            message for inner, note in grouped for message in _explain(inner, _inner_place(place, note), options)
        ]
        return described + [message for inner in ungrouped for message in _explain(inner, place, options)]
    if isinstance(error, ForbiddenExtraKeysError):
        known = tuple(field.alias or field.name for field in attrs.fields(options))
        return [f"{place}.{key}: unknown key{nearest(key, known)}" for key in sorted(error.extra_fields)]
    return [f"{place}: {error}"]


def _inner_place(place: str, note: Any) -> str:
    name = getattr(note, "name", None)
    return f"{place}.{name}" if name is not None else f"{place}[{getattr(note, 'index', '?')}]"
