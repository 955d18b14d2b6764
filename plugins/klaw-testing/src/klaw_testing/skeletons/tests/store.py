"""Test the contract of stores."""

from pathlib import Path

import pytest

from klaw_core import ComponentContext, NoOptions
from klaw_testing.skeletons.store import open_store
from klaw_testing.store import StoreContract


class TestSkeleton(StoreContract):
    @pytest.fixture
    def open_store(self):
        return lambda: open_store(NoOptions(), ComponentContext(Path(), Path()))

    def make_table(self, resource):  # a table of an extension, in the store's own way
        resource.extensions["notes-kept", "rows"] = ()

    def add_row(self, resource, text):
        resource.extensions["notes-kept", "rows"] += (text,)

    def rows(self, resource):
        return list(resource.extensions["notes-kept", "rows"])
