"""A plugin of pytest: it says which fixture a contract lacks, and which abilities a contract did not test."""

from __future__ import annotations

import inspect
from collections import Counter, defaultdict
from collections.abc import Generator
from typing import Any, NoReturn

import pytest

_PREFIX = "not tested: "


def lacks(what: str) -> NoReturn:
    """Skip a law, because the implementation does not have this ability."""
    pytest.skip(f"{_PREFIX}{what}")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, object, object]:
    """Say what to define if a test of a contract asks for a fixture that only a subclass can define."""
    try:
        return (yield)
    except NotImplementedError as error:
        if not fixturedef.func.__module__.startswith("klaw_testing."):
            raise
        where = request.cls.__name__ if request.cls else "the test"
        what = inspect.cleandoc(fixturedef.func.__doc__ or "").partition("\n")[0]
        raise pytest.fail.Exception(
            f"define the fixture `{fixturedef.argname}` in {where}: {what}", pytrace=False
        ) from error


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write a line for each class of tests with laws that were skipped by :func:`lacks`."""
    found = defaultdict[str, Counter[str]](Counter)
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, prefix, what = reason.partition(_PREFIX)
        if prefix:
            found[report.nodeid.rpartition("::")[0]][what] += 1
    if found:
        terminalreporter.section("contracts: abilities that were not tested")
    for place, missing in sorted(found.items()):
        laws = (f"{what} ({count} {'law' if count == 1 else 'laws'})" for what, count in sorted(missing.items()))
        terminalreporter.write_line(f"{place}: {', '.join(laws)}")
