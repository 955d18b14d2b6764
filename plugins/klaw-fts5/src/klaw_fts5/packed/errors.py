"""The error for damaged packed postings."""

from __future__ import annotations


class DamagedError(Exception):
    """A row of the packed form is missing or damaged. FTS5 is used instead."""


#: Exceptions when reading a damaged row; the last ones if a blob has become text.
DAMAGE = (DamagedError, UnicodeDecodeError)
