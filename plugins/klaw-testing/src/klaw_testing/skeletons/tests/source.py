"""Test the contract of sources."""

import pytest

from klaw_testing.skeletons.source import SkeletonSource
from klaw_testing.source import SourceContract


class TestSkeleton(SourceContract):
    @pytest.fixture
    def source(self, tmp_path):
        (tmp_path / "harbour.log").write_text("06:40 The ferry leaves.\n")
        (tmp_path / "empty.log").write_text("")
        return SkeletonSource(tmp_path)
