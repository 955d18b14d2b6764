"""What a converter makes of a file: the text that is indexed, and what else the file says of itself."""

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
    when the file says that it was written. ``is_original``: the text is the file's own, only decoded, so that it need
    not be kept in the cache.
    """

    text: str = field(repr=False)
    format: str = DEFAULT_FORMAT
    metadata: Metadata = field(factory=dict)
    created_at: datetime | None = None
    is_original: bool = False
