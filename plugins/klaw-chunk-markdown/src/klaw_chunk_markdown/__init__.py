"""Klaw chunkers ``markdown`` and ``transcript``.

``blocks`` parses the block structure, ``pieces`` lays the text out as measured pieces that may not be cut
further, ``cuts`` says where a text may be cut at all, ``packing`` fills chunks with pieces. They are imported, and
markdown-it-py with them, at the first split.
"""
