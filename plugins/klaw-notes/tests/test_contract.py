"""The contract of the extension `workspaces`."""

import os

import pytest

from klaw_core import Memory, Record, load_config
from klaw_testing.extension import ExtensionContract


class KeepingContract(ExtensionContract):
    """A memory in which the extension has data."""

    @pytest.fixture
    def memory(self, tmp_path):
        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        with Memory.open(config) as memory:
            notes = tmp_path / "notes"
            notes.mkdir()
            (notes / "a.md").write_text("# Kiln\n\nThe kiln is hot.\n", "utf-8")
            memory.index(notes)
            yield memory

    def test_the_extension_has_data_to_check(self, extension):
        assert any(isinstance(item, Record) for item in extension.records())


class TestWorkspaces(KeepingContract):
    name = "workspaces"
