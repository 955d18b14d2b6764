"""Access tokens. The owner's token opens all memories, an agent's token opens only that agent's memory."""

from __future__ import annotations

import re
import secrets
import sys
from pathlib import Path

from attrs import frozen

from klaw_core import StoreReadOnlyError, locked, own_directory, read_regular, write_atomically
from klaw_journals.trust import Trust

FILE = "serve.token"
_TOKEN_BYTES = 32
_MAX_FILE_BYTES = 1_000
# A valid agent name, which cannot be a path to another directory.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")


@frozen
class Tokens:
    """The token files below a data directory, each readable by its owner only."""

    data_dir: Path

    def file(self, agent: str = "") -> Path:
        """Return the file of the owner's token, or of an agent's."""
        return (own_directory(self.data_dir, "agents", agent) if agent else self.data_dir) / FILE

    def make(self, agent: str = "") -> str:
        """Return a token; create it if there is none. Raise StoreReadOnlyError if others can read its file."""
        file = self.file(agent)
        with locked(file.parent):
            known = self.read(agent)
            if known:
                return known
            token = secrets.token_urlsafe(_TOKEN_BYTES)
            write_atomically(file, f"{token}\n")
            return token

    def read(self, agent: str = "") -> str:
        """Return a token; empty if there is none. Raise StoreReadOnlyError if others can read its file."""
        file = self.file(agent)
        try:
            mode = file.stat().st_mode
            text = read_regular(file)[:_MAX_FILE_BYTES].decode("ascii", "replace").strip()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise StoreReadOnlyError(f"{file} cannot be read: {error.strerror}") from error
        if mode & 0o077 and sys.platform != "win32":  # where modes say nothing
            raise StoreReadOnlyError(
                f"others can read {file} (mode {mode & 0o777:03o})", hint=f"rm {file}; the next start creates a new one"
            )
        return text

    def accept(self, given: str, agent: str = "") -> bool:
        """Return whether a token opens the memory of an agent (``""`` for the owner's), in constant time."""
        return self.trust(given, agent) is not None

    def trust(self, given: str, agent: str = "") -> Trust | None:
        """Return the class of what is written with a token in the memory of an agent; None if it does not open it."""
        is_owners = _equal(given, self.read())
        is_agents = bool(_NAME.fullmatch(agent)) and _equal(given, self.read(agent))
        return "owner" if is_owners else "agent" if is_agents else None


def _equal(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), known.encode()) and bool(known)
