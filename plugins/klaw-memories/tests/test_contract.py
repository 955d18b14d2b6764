"""The contract of the extensions of klaw-memories."""

import os

import pytest

from klaw_core import Memory, NewDocument, Record, load_config
from klaw_testing.extension import ExtensionContract


class KeepingContract(ExtensionContract):
    """A memory in which the extension has data."""

    @pytest.fixture
    def memory(self, tmp_path):
        overrides = {"memory": {"embedding": {"type": "none"}}}
        config = load_config(data_dir=tmp_path / "data", environment={"KLAW_CONFIG": os.devnull}, overrides=overrides)
        with Memory.open(config) as memory:
            memory.save("The boat is red.")
            memory.core.update("user", "name", "Ada")
            memory.add([NewDocument("d1", "The door is green.", {"tags": ["a", "b"]})])
            memory.index()
            yield memory

    def test_the_extension_has_data_to_check(self, extension):
        assert any(isinstance(item, Record) for item in extension.records())


class TestCoreMemory(KeepingContract):
    name = "core_memory"


class TestSaved(KeepingContract):
    name = "saved"


class TestDocuments(KeepingContract):
    name = "documents"
