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
