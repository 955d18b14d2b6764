"""Split notes along their block structure, and conversations between messages.

``blocks`` parses the block structure, ``pieces`` divides the text into measured pieces that are not split further,
``cuts`` finds the positions where a text may be split, and ``packing`` fills chunks with pieces. They, and
markdown-it-py, are imported at the first split.
"""
