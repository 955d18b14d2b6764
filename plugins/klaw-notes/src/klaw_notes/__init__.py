"""Klaw chunkers ``markdown`` and ``transcript``, in ``chunking``."""
