"""Test the contract of language models."""

import pytest

from klaw_testing.language_model import LanguageModelContract
from klaw_testing.skeletons.language_model import SkeletonModel


class TestSkeleton(LanguageModelContract):
    @pytest.fixture
    def model(self):
        return SkeletonModel()
