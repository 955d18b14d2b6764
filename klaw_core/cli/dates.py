"""Parse dates and times in option values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

import click


def when(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time is stored like the day of a note."""
    return _parsed("begin", value, context, parameter)


def since(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its start."""
    return _parsed("first", value, context, parameter)


def until(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its end, so the day is included."""
    return _parsed("end", value, context, parameter)


def as_of(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its last moment."""
    return _parsed("last", value, context, parameter)


def _parsed(
    day: Literal["begin", "last", "first", "end"], value: str | None, context: click.Context, parameter: click.Parameter
) -> datetime | None:
    if value is None:
        return None
    from klaw_core.cli.moments import parse_moment  # imported late: dates are rare

    try:
        return parse_moment(value, datetime.now(UTC), day=day)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is not a date; try 2026-02-24, 2026-02-24T10:30, 7d, 2w or yesterday", context, parameter
        ) from error
