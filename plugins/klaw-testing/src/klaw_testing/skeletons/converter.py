"""A converter: the text of subtitles."""

from collections.abc import Iterable

from attrs import frozen

from klaw_core import Component, Conversion, ConversionError, Converter, NoOptions, hookimpl


@frozen
class SkeletonConverter(Converter):
    """Reads ``*.srt`` files. Change ``version`` whenever the same bytes would give another text."""

    patterns = ("*.srt",)
    version = "1"

    def convert(self, data: bytes, _name: str, /) -> Conversion:
        """Return the lines that are neither numbers nor times."""
        if b"-->" not in data:
            raise ConversionError("has no subtitles")
        lines = data.decode("utf-8-sig", "replace").splitlines()
        return Conversion("\n".join(line for line in lines if "-->" not in line and not line.isdigit()), "plain")


@hookimpl
def klaw_converters() -> Iterable[Component[NoOptions, Converter]]:
    """Yield the converter."""
    yield Component("skeleton", NoOptions, lambda _options, _context: SkeletonConverter(), api=2)
