"""Parse dates and times in option values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click


def since(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its start."""
    return None if value is None else _moment(value, timedelta(), context, parameter)


def until(context: click.Context, parameter: click.Parameter, value: str | None) -> datetime | None:
    """Parse an option's value, as a click callback; a day without a time means its end, so the day is included."""
    return None if value is None else _moment(value, timedelta(days=1), context, parameter)


def _moment(value: str, after_a_day: timedelta, context: click.Context, parameter: click.Parameter) -> datetime:
    try:
        from klaw_core.values.moments import parse_moment  # imported late: dates are rare

        return parse_moment(value, datetime.now(UTC), after_a_day)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{value!r} is not a date; try 2026-02-24, 2026-02-24T10:30, 7d, 2w or yesterday", context, parameter
        ) from error
