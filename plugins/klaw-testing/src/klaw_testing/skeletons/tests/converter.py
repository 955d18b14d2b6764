"""Test the contract of converters."""

from typing import ClassVar

import pytest

from klaw_testing.converter import ConverterContract
from klaw_testing.skeletons.converter import SkeletonConverter


class TestSkeleton(ConverterContract):
    files: ClassVar = {"film.srt": b"1\n00:01 --> 00:02\nThe ferry leaves.\n"}

    @pytest.fixture
    def converter(self):
        return SkeletonConverter()
