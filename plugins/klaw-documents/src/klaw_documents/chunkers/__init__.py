"""Chunkers that find the sections of a text. Within a section, the core's plain chunker splits the text."""
