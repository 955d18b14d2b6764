"""The type of arguments that are a text of any kind, which may look like an option."""

from __future__ import annotations

import click


class FreeText(click.types.StringParamType):
    """A text that people write. If it begins with ``-``, an error says how to pass it."""
