"""Chunkers that know where the sections of a text are; within a section the core's plain chunker cuts."""
