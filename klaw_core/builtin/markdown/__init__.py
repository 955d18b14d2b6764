"""The Markdown chunker: cuts a note into passages along its own structure.

``blocks`` reads the block structure, ``pieces`` lays the text out as measured pieces that may not be cut
further, ``cuts`` knows where text may be cut at all, ``packing`` fills passages with pieces. All of them, and
markdown-it-py with them, are imported at the first split.
"""

from klaw_core.builtin.markdown.chunker import MarkdownChunker, MarkdownOptions

__all__ = ["MarkdownChunker", "MarkdownOptions"]
