"""A tool that a language model can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from attrs import field, frozen

#: A JSON object, as it is sent to a model or comes from one.
Json: TypeAlias = dict[str, Any]


@frozen
class Tool:
    """A tool: its description for a model, and the function that runs when the model calls it.

    ``properties`` are the JSON Schemas of the arguments by name; those in ``required`` must be given, unknown arguments
    are rejected. ``aliases`` are other argument names that models use, not shown to them: ``{"topK": "limit"}``.
    ``run`` gets arguments that satisfy the schema and returns a JSON object; a KlawError that it raises becomes an
    answer that the model can act on. ``read_only``: it changes nothing. ``destructive``: it removes something.
    ``opt_in``: it is offered only if a program allows it by name.
    """

    name: str
    description: str
    properties: Mapping[str, Json] = field(repr=False)
    run: Callable[[Json], Json] = field(repr=False, eq=False)
    required: tuple[str, ...] = ()
    read_only: bool = False
    destructive: bool = False
    opt_in: bool = False
    aliases: Mapping[str, str] = field(factory=dict, repr=False)

    @property
    def input_schema(self) -> Json:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {name: dict(schema) for name, schema in self.properties.items()},
            "required": list(self.required),
            "additionalProperties": False,
        }
