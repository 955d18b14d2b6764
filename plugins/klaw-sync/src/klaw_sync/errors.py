"""What is wrong with a file of a remote."""

from klaw_core import KlawError


class SegmentError(KlawError):
    """A file of a remote cannot be read. It may be incomplete, so it is tried again at the next run."""
