"""Parse dates and times in option values, as click callbacks."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Literal

import click


def _parsed(
    day: Literal["begin", "last", "first", "end"], context: click.Context, parameter: click.Parameter, value: str | None
) -> datetime | None:
    if value is None:
        return None
    from klaw_core.cli.moments import parse_moment  # imported late: dates are rare

    try:
        return parse_moment(value, datetime.now(UTC), day=day)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a date; {error}", context, parameter) from error


# A period (a day, a month, a year) is its beginning in UTC, like the day of a note; its start; its end, so that it is
# included; its last moment.
when = partial(_parsed, "begin")
since = partial(_parsed, "first")
until = partial(_parsed, "end")
as_of = partial(_parsed, "last")
