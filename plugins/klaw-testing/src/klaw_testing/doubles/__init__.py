"""Servers and models for tests: each answers as the real one does, as far as a plugin asks it.

They need what ``klaw-testing[doubles]`` installs; ``postgres`` and ``cross_encoder`` also need the
libraries of their plugins.
"""
