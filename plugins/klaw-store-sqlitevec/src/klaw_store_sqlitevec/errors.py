"""Convert SQLite's errors to Klaw's, each with the file and a hint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from klaw_core import (
    DatabaseCorruptError,
    RetrievalError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)
from klaw_store_sqlitevec.lock_holders import writer_of
from klaw_store_sqlitevec.permissions import how_to_permit

#: The hint for a damaged database.
REINDEX = "klaw reindex"
# A ProtocolError is SQLite's answer when another process, which stands still, does not finish what it does to the log.
_LOCKED = (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)
# Another program has dropped or changed a table, or the record of migrations is damaged.
_DIFFERENT = re.compile(
    r"no such (?:table|column)|table .* has no column named|(?:table|index) .* already exists"
    r"|unsupported file format|unsupported encoding"
)


@contextmanager
def store_errors(location: str) -> Iterator[None]:
    """Convert an apsw error inside the block to a StoreError."""
    try:
        yield
    except _LOCKED as error:
        raise StoreLockedError(
            f"{location} is locked by {writer_of(Path(location))}", hint="wait for it to finish, then try again"
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise StoreReadOnlyError(
            f"{location} cannot be opened for writing: {error}", hint=how_to_permit(Path(location))
        ) from error
    except apsw.FullError as error:
        raise _full(location) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise damaged(location, f"is not a valid SQLite database: {error}") from error
    except UnicodeDecodeError as error:
        raise damaged(location, f"contains damaged text: {error.reason}") from error
    except UnicodeEncodeError as error:
        told = f"{location} cannot hold a text with unpaired surrogates"
        raise StoreError(told, hint="remove the characters U+D800 to U+DFFF from the text") from error
    except apsw.ThreadingViolationError as error:
        raise StoreError(f"{location}: a snapshot or transaction was used by two threads at once") from error
    except apsw.Error as error:
        raise _store_error(location, error) from error


def _store_error(location: str, error: apsw.Error) -> StoreError:
    """Return the StoreError for an SQLite error without a specific class."""
    # On a full disk, the shared memory of the log, a small file, cannot be created.
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return _full(location)
    if isinstance(error, apsw.SQLError) and _DIFFERENT.match(str(error)):
        return damaged(location, f"is not what Klaw made: {error}")
    return StoreError(f"{location}: {type(error).__name__}: {error}")


def damaged(location: str, what: str) -> DatabaseCorruptError:
    """Return the error for a damaged database; ``what`` continues the sentence."""
    return DatabaseCorruptError(f"{location} {what}", hint=REINDEX)


def damaged_vectors(problem: str) -> RetrievalError:
    """Return the error for damaged vectors. The hint is a reindex: `klaw doctor --fix` does not repair pages."""
    return RetrievalError(problem, hint=REINDEX)


def _full(location: str) -> StoreFullError:
    return StoreFullError(f"no space left for {location}; nothing was changed", hint="free some space, then try again")
