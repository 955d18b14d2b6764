"""Test the contract of extensions."""

import pytest

from klaw_core import LiveComponent, Memory, load_config
from klaw_testing.extension import ExtensionContract
from klaw_testing.skeletons.extension import Options, SkeletonExtension


class TestSkeleton(ExtensionContract):
    name = "skeleton"

    @pytest.fixture
    def memory(self, tmp_path):
        config = load_config(data_dir=tmp_path, environment={}, overrides={"memory": {"embedding": {"type": "none"}}})
        own = LiveComponent("extension", self.name, SkeletonExtension(Options()))
        with Memory.open(config, components=[own]) as memory:
            yield memory

    def test_the_tool_counts_documents(self, memory, tmp_path):
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "boat.md").write_text("Paint the boat.")
        memory.index(tmp_path / "notes")
        assert memory.call_tool("skeleton_count", {}) == {"documents": 1}
        assert memory.call_tool("skeleton_count", {"origin": "other"}) == {"documents": 0}
