"""Parse dates and times in option values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import click


def when(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time is stored like the day of a note."""
    return _parsed("parse_moment", value, context, parameter)


def since(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its start."""
    return _parsed("first_moment", value, context, parameter)


def until(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its end, so the day is included."""
    return _parsed("end_moment", value, context, parameter)


def _parsed(name: str, value: str | None, context: click.Context, parameter: click.Parameter) -> datetime | None:
    if value is None:
        return None
    from klaw_core.values import moments  # imported late: dates are rare

    parse: Callable[[str, datetime], datetime] = getattr(moments, name)
    try:
        return parse(value, datetime.now(UTC))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is not a date; try 2026-02-24, 2026-02-24T10:30, 7d, 2w or yesterday", context, parameter
        ) from error
