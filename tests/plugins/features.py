"""Skip what needs a feature that was deleted from the checkout; what is there and cannot be imported is an error.

A test file says with an import that it needs a feature. A test that uses one without importing it, by a command or an
attribute of ``Memory``, says so with ``@pytest.mark.needs("klaw-conversations")``.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from checkout import installable, left_out

ROOT = Path(__file__).parents[2]


def absent(root: Path = ROOT) -> frozenset[str]:
    """Return the distributions that Klaw knows, and that cannot be installed from the checkout."""
    from klaw_core.plugins.catalogue import CATALOGUE  # here, so that a session without them can load this module

    return frozenset(row.distribution for row in CATALOGUE) - {path.name for path in installable(root)}


def _reason(name: str) -> str:
    return f"needs {name}, which is not in this checkout"


def missing(error: BaseException | None) -> str | None:
    """Return why a test is skipped that ended with an error: it imports itself what is not in the checkout."""
    if not isinstance(error, ModuleNotFoundError) or not error.name or error.__traceback__ is None:
        return None
    name = error.name.partition(".")[0].replace("_", "-")
    return _reason(name) if _in_a_test(error) and name in absent() else None


def _in_a_test(error: BaseException) -> bool:
    """Tell whether the import stands in a test, and not in the code that is tested."""
    at, files = error.__traceback__, list[Path]()
    while at is not None:
        files.append(Path(at.tb_frame.f_code.co_filename))
        at = at.tb_next
    own = [path for path in files if not str(path).startswith("<") and path.is_relative_to(ROOT)]
    return bool(own) and "tests" in own[-1].relative_to(ROOT).parts


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*distributions): skip the test if the checkout does not have one of them")


def pytest_report_header() -> list[str]:
    return [f"left out: {name}, which needs {', '.join(sorted(of))}" for name, of in left_out(ROOT).items()]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.parent == ROOT / "plugins" and collection_path.name in left_out(ROOT) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        for name in sorted(needed & absent()) if needed else ():
            item.add_marker(pytest.mark.skip(reason=_reason(name)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    excinfo = getattr(report, "call").excinfo  # noqa: B009  # pytest sets it without declaring it
    if excinfo and (reason := missing(excinfo.value.__cause__)):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 1, f"Skipped: {reason}")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, Any, Any]:
    return (yield from _skipping())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    return (yield from _skipping())


def _skipping() -> Generator[None, Any, Any]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if reason := missing(error):
            pytest.skip(reason)
        raise
