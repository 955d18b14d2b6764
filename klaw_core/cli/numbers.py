"""The type of options that are numbers."""

from __future__ import annotations

from math import isfinite
from typing import Any

import click


class Number(click.types.FloatParamType):
    """A number. ``nan`` is in every range of click, because no comparison with it holds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; fail if it is not finite."""
        number = super().convert(value, param, ctx)
        return number if isfinite(number) else self.fail(f"{value!r} is not a number", param, ctx)


class NumberRange(Number, click.FloatRange):
    """A number in a range."""
