"""Skip what needs a feature that was deleted from the checkout; what is there and cannot be imported is an error.

A test says that it needs a feature by importing it, or by asking ``Memory`` for it: ``memory.conversations``. One that
uses a feature in another way, by a command, says so with ``@pytest.mark.needs("klaw-conversations")``. A failure in the
code that is tested is never a reason to skip: the core must work without each feature.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from checkout import installable, left_out

ROOT = Path(__file__).parents[2]


#: Pages of the documentation that are about a feature, or use it as their example.
PAGES = {
    "docs/explanation/archival-memory.md": "klaw-conversations",
    "docs/how-to/conversations.md": "klaw-conversations",
    "docs/how-to/evaluate.md": "klaw-conversations",
    "docs/reference/jsonl-format.md": "klaw-conversations",
    "docs/tutorial/a-week-with-an-agent.md": "klaw-conversations",
    "plugins/langchain-klaw/README.md": "klaw-conversations",
}


def absent(root: Path = ROOT) -> frozenset[str]:
    """Return the distributions that Klaw knows, and that cannot be installed from the checkout."""
    from klaw_core.plugins.catalogue import CATALOGUE  # here, so that a session without them can load this module

    return frozenset(row.distribution for row in CATALOGUE) - {path.name for path in installable(root)}


def _reason(name: str) -> str:
    return f"needs {name}, which is not in this checkout"


def missing(error: BaseException | None) -> str | None:
    """Return why a test is skipped that ended with an error: it asks itself for what is not in the checkout."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        name = error.name.partition(".")[0].replace("_", "-")
        return _reason(name) if name in absent() and _imported_by_a_test(error) else None
    if type(error).__name__ == "PluginNotFoundError":
        from klaw_core.plugins.catalogue import CATALOGUE

        extras = getattr(error, "extras", ())
        names = {row.distribution for row in CATALOGUE if {*row.extras} & {*extras}} & absent()
        return _reason(min(names)) if names and _asked_by_a_test(error) else None
    return None


#: The attributes and methods of ``Memory`` that a feature offers are here; each calls ``_part`` to find its extension.
_DELEGATES = {Path("klaw_core", name) for name in ("memory.py", "async_memory.py", "holds.py")}


def _below_the_test(error: BaseException) -> list[tuple[Path, str]] | None:
    """Return the files and functions that the last test called until an error was raised; None without a test."""
    at, frames = error.__traceback__, list[tuple[Path, str]]()
    while at is not None:
        code, at = at.tb_frame.f_code, at.tb_next
        path = Path(code.co_filename)
        if path.is_relative_to(ROOT) and ".nox" not in path.parts:
            frames.append((path.relative_to(ROOT), code.co_name))
    tests = [number for number, (path, _) in enumerate(frames) if "tests" in path.parts]
    return frames[tests[-1] + 1 :] if tests else None


def _imported_by_a_test(error: BaseException) -> bool:
    return _below_the_test(error) == []


def _asked_by_a_test(error: BaseException) -> bool:
    below = _below_the_test(error) or []
    before = list(takewhile(lambda frame: frame[1] != "_part", below))
    return len(before) < len(below) and {path for path, _ in before} <= _DELEGATES


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*distributions): skip the test if the checkout does not have one of them")


def pytest_report_header() -> list[str]:
    return [f"left out: {name}, which needs {', '.join(sorted(of))}" for name, of in left_out(ROOT).items()]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return True if collection_path.parent == ROOT / "plugins" and collection_path.name in left_out(ROOT) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        if item.path.suffix == ".md":
            needed |= {PAGES[page] for page in [item.path.relative_to(ROOT).as_posix()] if page in PAGES}
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
    except Exception as error:
        if reason := missing(error):
            pytest.skip(reason)
        raise
