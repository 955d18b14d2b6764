"""A plugin of pytest: after the tests, list what each contract did not test because an ability is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import NoReturn

import pytest

_PREFIX = "not tested: "


def lacks(what: str) -> NoReturn:
    """Skip a law, because the implementation does not have this ability."""
    pytest.skip(f"{_PREFIX}{what}")


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
