"""The result of a converter: the text of a file, and its metadata."""

from __future__ import annotations

from datetime import datetime

from attrs import field, frozen

from klaw_core.values.metadata import Metadata
from klaw_core.values.text import DEFAULT_FORMAT


@frozen
class Conversion:
    """The text of a file. Lines of results, and of ``klaw get``, are lines of this text.

    ``format`` names the chunker of the text; ``code:python`` is the variant ``python`` of the chunker ``code``.
    ``metadata`` is what searches can filter by; its ``title`` becomes part of the document's. ``created_at`` (aware) is
    the date that the file itself states. ``is_original``: the text is the decoded file, so it is not cached.
    """

    text: str = field(repr=False)
    format: str = DEFAULT_FORMAT
    metadata: Metadata = field(factory=dict)
    created_at: datetime | None = None
    is_original: bool = False
