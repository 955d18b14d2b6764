"""Make a run red that executed fewer tests than it collected, and say how many it was.

A worker of pytest-xdist that dies takes its queue along, and what remains may be green. Deselected tests were not
collected, and a run that was asked to stop early (``-x``, ``--maxfail``, ``--stepwise``, Ctrl-C) is not judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

#: So many tests are named; of the others there is the number.
NAMED = 20


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that reports, and not in each worker."""
    if not hasattr(config, "workerinput") and not config.option.collectonly:
        config.pluginmanager.register(_Counter(), "klaw-executed")


class _Counter:
    def __init__(self) -> None:
        self._collected: dict[str, None] = {}  # in order
        self._executed: set[str] = set()
        self._judged = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._collected.update(dict.fromkeys(item.nodeid for item in session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        self._collected.update(dict.fromkeys(ids))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._executed.add(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        stopped = session.shouldfail or session.shouldstop
        self._judged = exitstatus in {pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED} and not stopped
        if self._judged and self._missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        if not self._judged:
            return
        missing = self._missing()
        said = f"collected {len(self._collected)}, executed {len(self._collected) - len(missing)}"
        if not missing:
            terminalreporter.write_line(said)
            return
        terminalreporter.section("tests that were collected and not executed", red=True, bold=True)
        terminalreporter.write_line(f"{said}, missing {len(missing)}: {_shown(missing)}", red=True)

    def _missing(self) -> list[str]:
        return [name for name in self._collected if name not in self._executed]


def _shown(names: Sequence[str]) -> str:
    more: Iterable[str] = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])
