"""The options of converters reach the process that parses."""

from klaw_documents.converters import parsed_converter
from klaw_documents.options import ParsedOptions


def test_the_limits_are_those_of_the_options():
    converter = parsed_converter("pdf", ParsedOptions(max_bytes=5, timeout_seconds=2.5, memory_mb=256))
    assert converter.max_bytes == 5
    assert (converter.process.timeout_seconds, converter.process.memory_mb) == (2.5, 256)
    assert not converter.on_request
    assert parsed_converter("pdf", ParsedOptions(on_request=True)).on_request
