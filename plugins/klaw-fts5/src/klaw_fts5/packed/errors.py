"""What the packed form says when it cannot be trusted."""

from __future__ import annotations


class DamagedError(Exception):
    """A row of the packed form is missing, or is not what was written. FTS5 answers instead."""


#: What reading a damaged row raises: the latter where a blob has become text.
DAMAGE = (DamagedError, UnicodeDecodeError)
