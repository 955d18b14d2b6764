"""A document that a program stores under its own id, and its record in the journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from attrs import field, frozen

from klaw_core import RecordError, quoted
from klaw_core.values.metadata import Metadata, check_metadata
from klaw_core.values.text import DEFAULT_FORMAT
from klaw_journals.timestamps import as_utc, format_ts, parse_ts
from klaw_journals.trust import FOREIGN, Trust, check_trust

_MAX_ID_CHARACTERS = 500
_MAX_TEXT_CHARACTERS = 1_000_000
_MAX_PAYLOAD_CHARACTERS = 1_000_000


def _check_id(_instance: object, _attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or not value or len(value) > _MAX_ID_CHARACTERS or not value.isprintable():
        raise RecordError(f"invalid document id {quoted(value)}: use 1 to {_MAX_ID_CHARACTERS} printable characters")


def _check_text(_instance: object, _attribute: Any, value: Any) -> None:
    if not isinstance(value, str) or len(value) > _MAX_TEXT_CHARACTERS:
        raise RecordError(f"the text must be a string of at most {_MAX_TEXT_CHARACTERS:,} characters")


def _check_payload(_instance: object, _attribute: Any, value: Any) -> None:
    if value is None:
        return
    try:
        written = json.dumps(value, ensure_ascii=False, allow_nan=False)
        same = json.loads(written) == value
    except (TypeError, ValueError, RecursionError) as error:
        raise RecordError(f"the payload of a document must be JSON: {error}") from error
    if not same:
        raise RecordError("the payload of a document must be JSON: objects with string keys, lists, no tuples")
    if len(written) > _MAX_PAYLOAD_CHARACTERS:
        raise RecordError(f"the payload of a document takes at most {_MAX_PAYLOAD_CHARACTERS:,} characters as JSON")


@frozen
class NewDocument:
    """A text to store under an id of the caller.

    Searches can filter by ``metadata``; ``source`` is the label that results show; ``created_at`` (default: now) is
    aware. ``format`` names the chunker. ``payload`` is any JSON value: it is stored and returned with the document, but
    never searched. ``trust`` is the class of its writer. It is ``foreign`` unless the program says otherwise: such a
    text is found, but never added to a prompt unasked. Raise RecordError for invalid values.
    """

    id: str = field(validator=_check_id)
    text: str = field(repr=False, validator=_check_text)
    metadata: Metadata = field(factory=dict, converter=check_metadata)
    source: str = "document"
    created_at: datetime = field(factory=lambda: datetime.now(UTC), converter=as_utc)
    format: str = DEFAULT_FORMAT
    payload: Any = field(default=None, repr=False, validator=_check_payload)
    trust: Trust = field(default=FOREIGN, converter=check_trust)

    @classmethod
    def parse(cls, record: Mapping[str, Any]) -> Self:
        """Return the document of a journal's record. Raise RecordError."""
        try:
            return cls(
                record["document"],
                record["text"],
                record.get("metadata", {}),
                str(record["source"]),
                parse_ts(record["created_at"]),
                str(record.get("format", DEFAULT_FORMAT)),
                record.get("payload"),
                record.get("trust", FOREIGN),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise RecordError(f"not a document: {type(error).__name__}: {error}") from error

    @classmethod
    def of_file(cls, path: str | Path, source: str = "", *, id: str = "", trust: Trust = FOREIGN) -> Self:  # noqa: A002
        """Return a text file as a document, under its name and dated by its last change; ``source`` is its label.

        Add it again after a change: ``memory.add([NewDocument.of_file("MEMORY.md")])``. A directory whose files are
        followed is a workspace (``Memory.index``). Raise RecordError if it is no text file in UTF-8.
        """
        file = Path(path).expanduser()
        try:
            text, changed = file.read_text("utf-8"), file.stat().st_mtime
        except UnicodeDecodeError as error:
            raise RecordError(f"{file} is not UTF-8", hint="save it as UTF-8") from error
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise RecordError(f"{file} cannot be read: {why}", hint="give the path of a text file") from error
        moment = datetime.fromtimestamp(changed, UTC)
        return cls(id or file.name, text, {}, source or file.name, moment, trust=trust)

    @property
    def path(self) -> str:
        """The path of the document in results."""
        return f"documents/{self.id}"

    def record(self, collection: str) -> dict[str, Any]:
        """Return the record for the journal."""
        return {
            "id": f"{collection}/{self.id}",
            "collection": collection,
            "document": self.id,
            "created_at": format_ts(self.created_at),
            "source": self.source,
            "format": self.format,
            "metadata": {
                key: list(value) if isinstance(value, tuple) else value for key, value in self.metadata.items()
            },
            "text": self.text,
            **({} if self.trust == FOREIGN else {"trust": self.trust}),
            **({} if self.payload is None else {"payload": self.payload}),
        }
