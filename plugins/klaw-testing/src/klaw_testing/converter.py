"""The contract of a converter; the subclass defines the converter and files that it reads.

class TestPdfConverter(ConverterContract):
    files = {"letter.pdf": PDF}

    @pytest.fixture
    def converter(self):
        return PdfConverter(PdfOptions())
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaw_core import Conversion, ConversionError, Converter, check_metadata
from klaw_testing.laws import scaled


class ConverterContract:
    """The laws of a converter. ``files`` are valid files by name.

    ``examples`` is the number of damaged files in a profile of hypothesis with 100 examples.
    """

    files: ClassVar[Mapping[str, bytes]] = {}
    examples: ClassVar[int] = 30

    @pytest.fixture
    def converter(self) -> Any:
        """Return the converter under test."""
        raise NotImplementedError  # pragma: no cover  # the subclass's fixture replaces it

    def readable(self) -> Mapping[str, bytes]:
        """Return the files, of which there must be one."""
        assert self.files, "the contract needs files that the converter reads"
        return self.files

    def test_it_declares_valid_patterns(self, converter: Converter) -> None:
        patterns: Any = converter.patterns
        assert not isinstance(patterns, str)
        assert patterns
        assert all(isinstance(pattern, str) and pattern for pattern in patterns)
        assert isinstance(converter.version, str)
        assert isinstance(converter.on_request, bool)
        assert converter.max_bytes >= 0
        for name in self.readable():
            assert any(fnmatch(name.lower(), pattern.lower()) for pattern in converter.patterns), name

    def test_a_file_becomes_text(self, converter: Converter) -> None:
        for name, data in self.readable().items():
            made = converter.convert(data, name)
            check(made)
            assert made.text.strip()

    def test_equal_bytes_give_equal_text(self, converter: Converter) -> None:
        for name, data in self.readable().items():
            assert converter.convert(data, name) == converter.convert(data, name)

    def test_an_original_text_has_the_lines_of_the_file(self, converter: Converter) -> None:
        for name, data in self.readable().items():
            made = converter.convert(data, name)
            if made.is_original:
                assert made.text.splitlines() == data.decode("utf-8-sig").splitlines()

    def test_a_damaged_file_gives_text_or_a_conversion_error(self, converter: Converter) -> None:
        """A file that is cut short or has changed bytes raises nothing except ConversionError."""

        @settings(max_examples=scaled(self.examples), deadline=None, suppress_health_check=list(HealthCheck))
        @given(st.data())
        def check_damaged(data: st.DataObject) -> None:
            name = data.draw(st.sampled_from(sorted(self.files)))
            damaged = bytearray(self.files[name])
            for _ in range(data.draw(st.integers(0, 8))):
                damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
            whole = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
            try:
                made = converter.convert(whole, name)
            except ConversionError as error:
                assert error.message.strip()  # noqa: PT017  # any other exception is a failure
                assert "\n" not in error.message  # noqa: PT017
            else:
                check(made)

        check_damaged()

    def test_an_empty_file_gives_text_or_a_conversion_error(self, converter: Converter) -> None:
        for name in self.readable():
            try:
                check(converter.convert(b"", name))
            except ConversionError as error:
                assert error.message.strip()  # noqa: PT017


def check(made: Conversion) -> None:
    """Check that a conversion is valid: Unicode text, a format, valid metadata, and a timezone-aware date."""
    made.text.encode()
    assert made.format
    check_metadata(made.metadata)
    assert made.created_at is None or made.created_at.utcoffset() is not None, "dates must be timezone-aware"
