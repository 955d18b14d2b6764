"""Thin the laws of a contract that an engine keeps in several forms: all of them once, a third in each other form.

``@pytest.mark.another_form`` marks such a form, as a class or as a parameter. Which third it is depends on the names of
the law and of the form, so that each form has another third. ``--every-form`` runs them all, as does naming a test.
"""

from __future__ import annotations

from zlib import crc32

import pytest

#: One law of so many is kept.
SHARE = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-form", action="store_true", help="run all laws of a contract in all forms of an engine")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "another_form: a form of an engine that keeps its contract in another one")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.every_form or any("::" in argument for argument in config.args):
        return
    left_out = [item for item in items if item.get_closest_marker("another_form") and not _chosen(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in set(left_out)]


def _chosen(item: pytest.Item) -> bool:
    law = getattr(item, "originalname", item.name)
    form = item.nodeid.replace(law, "")
    return (crc32(law.encode()) + crc32(form.encode())) % SHARE == 0
