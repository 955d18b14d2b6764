"""Campaigns: tests that try many cases, a sample of them unless ``--campaigns`` asks for all.

- A test counts the cases that it tries itself with the fixture ``cases``.
- Of the tests with ``@pytest.mark.one_of(n)`` one of ``n`` runs, which one depends on nothing but their names: of the
  parameters of a test, or of the laws of a contract in another form of an engine, which keeps them all in one form.
- A test that is marked ``campaign`` by itself takes long, and runs only with ``--campaigns``.

Tests that are named on the command line are all run. All three kinds are marked ``campaign``. With ``--campaigns`` a
table says at the end how many cases each test has tried, and how many of them have failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

#: Cases of a campaign that has no end of its own.
MANY = 1_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--campaigns", action="store_true", help="try every case of each campaign, and print a table")
    parser.addoption("--sampled", action="store_true", help="leave out what a sample leaves out, even if it is named")
    parser.addoption("--share", type=int, default=1, metavar="N", help="run one of N tests, by their names")


class Cases:
    """How many cases a test tries, which it counts here, with those that fail."""

    def __init__(self, *, whole: bool) -> None:
        self.whole = whole
        self.tried = self.failed = 0

    def add(self, tried: int, failed: int = 0) -> None:
        """Count cases that something else has tried."""
        self.tried += tried
        self.failed += failed

    def number(self, sample: int, whole: int = MANY) -> int:
        """Return how many to try, and count them. Fail if there are none: such a test would hold for anything."""
        chosen = whole if self.whole else sample
        assert chosen > 0, "the sample is empty"
        self.add(chosen)
        return chosen

    def every(self, sample: int) -> int:
        """Return of how many cases one is tried."""
        return 1 if self.whole else sample

    def seeded(self, name: str, sample: int) -> Iterator[tuple[int, Random]]:
        """Yield the number of each case to try, with its own dice."""
        for number in range(MANY if self.whole else sample):
            self.add(1)
            yield number, Random(f"{name} {number}")


@pytest.fixture
def cases(request: pytest.FixtureRequest) -> Iterator[Cases]:
    """Count the cases that a test tries."""
    counted = Cases(whole=request.config.option.campaigns)
    yield counted
    request.node.user_properties.append(("cases", [counted.tried, counted.failed]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = {item for item in items if item.get_closest_marker("campaign")}
    for item in items:
        if item.get_closest_marker("one_of") or "cases" in getattr(item, "fixturenames", ()):
            item.add_marker("campaign")
    named = any("::" in argument for argument in config.args) and not config.option.sampled
    left_out = {item for item in items if _number(item) % config.option.share}
    if not (config.option.campaigns or named):
        left_out |= long | {item for item in items if not _is_chosen(item)}
    if not left_out:
        return
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


def _is_chosen(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("one_of")
    return marker is None or _number(item) % marker.args[0] == 0


def _number(item: pytest.Item) -> int:
    return crc32(item.nodeid.encode())


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "one_of(n): one of n such tests runs, and all of them with --campaigns")
    config.addinivalue_line("markers", "campaign: tries a sample of its cases, or is one; this plugin marks them")
    if config.option.campaigns and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Table(), "klaw-campaigns")


class _Table:
    def __init__(self) -> None:
        self._tried: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()  # of tests

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid.partition("[")[0]
        self._failures[name] += report.failed
        if report.when == "teardown":
            for tried, failed in (value for key, value in report.user_properties if key == "cases"):
                self._tried[name] += tried
                self._failed[name] += failed
            self._tried[name] += "one_of" in report.keywords

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        rows = [(n, max(self._failed[name], self._failures[name]), name) for name, n in self._tried.items() if n]
        rows.append((sum(row[0] for row in rows), sum(row[1] for row in rows), "in all"))
        terminalreporter.section("campaigns")
        terminalreporter.write_line(f"{'cases':>8} {'failures':>8}")
        for tried, failed, name in rows:
            terminalreporter.write_line(f"{tried:>8,} {failed:>8,} {name}", red=bool(failed))
