"""The cache of converted files: the copies of the texts of documents, compressed, with their metadata."""

from __future__ import annotations

import json
import time
import zlib
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from attrs import frozen

from klaw_core import Conversion, ConversionError, KlawError, check_metadata
from klaw_core.files.atomic import make_private_directory, read_regular, write_all
from klaw_core.files.copies import Copies
from klaw_core.files.held import Temporary

_RETRY_SECONDS = 24 * 3600  # a file that needed too much time or memory is tried again after a day


@frozen
class ConversionCache(Copies):
    """Conversions by the path of their documents. Safe for several processes at once.

    An unreadable entry counts as missing; an entry that cannot be written is converted again next time.
    """

    def get(self, path: str, digest: str) -> Conversion | None:
        """Return the conversion of the bytes with this digest; None if there is none.

        Raise the cached ConversionError if they could not be converted.
        """
        file = self.file(path)
        try:
            found = json.loads(zlib.decompress(read_regular(file)))
            if found["digest"] != digest:
                return None
            if "error" in found:
                age = time.time() - file.stat().st_mtime
                error = ConversionError(str(found["error"]), keep=bool(found["keep"]))
            else:
                return _parse(found)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, KlawError, zlib.error):
            return None
        if error.keep and not 0 <= age < _RETRY_SECONDS:
            return None
        raise error

    def put(self, path: str, digest: str, made: Conversion | ConversionError) -> None:
        """Store the conversion of a document's file, and replace an earlier one."""
        if isinstance(made, ConversionError):
            entry: dict[str, Any] = {"digest": digest, "error": made.message, "keep": made.keep}
        else:
            entry = {
                "digest": digest,
                "text": made.text,
                "format": made.format,
                "metadata": made.metadata,
                "created_at": None if made.created_at is None else made.created_at.isoformat(),
            }
        with suppress(OSError, KlawError):
            self._write(self.file(path), zlib.compress(json.dumps(entry).encode(), 1))

    @staticmethod
    def _write(file: Path, data: bytes) -> None:
        """Replace a file. A part left by a crash is invalid, and counts as missing."""
        make_private_directory(file.parent)
        temporary = Temporary(file)
        with temporary as descriptor:
            write_all(descriptor, data)
            temporary.replace(flush=False)


def _parse(found: dict[str, Any]) -> Conversion:
    """Parse a stored conversion. Raise various exceptions if it is damaged."""
    metadata = {key: tuple(value) if isinstance(value, list) else value for key, value in found["metadata"].items()}
    check_metadata(metadata)
    text, text_format, moment = found["text"], found["format"], found["created_at"]
    if not isinstance(text, str) or not isinstance(text_format, str):
        raise TypeError
    return Conversion(text, text_format, metadata, None if moment is None else datetime.fromisoformat(moment))
