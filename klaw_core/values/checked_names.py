"""Refuse names that contain a secret: others refer to a name, so it cannot be redacted."""

from klaw_core.errors import RecordError
from klaw_core.redaction import Redactor


def check_name(redactor: Redactor, what: str, name: str) -> None:
    """Raise RecordError if a name contains a secret. ``what`` is the thing that has the name, for the message."""
    redacted = redactor.text(name)
    if redacted != name:
        raise RecordError(f"{what} contains a secret: {redacted}", hint="names are stored unchanged; choose another")
