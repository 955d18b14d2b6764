"""Test the contract of fusions."""

import pytest

from klaw_testing.fusion import FusionContract
from klaw_testing.skeletons.fusion import SkeletonFusion


class TestSkeleton(FusionContract):
    @pytest.fixture
    def fusion(self):
        return SkeletonFusion()
