"""Convert SQLite's errors to Klaw's, each with the file and a hint."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from klaw_core import (
    RetrievalError,
    StoreCorruptError,
    StoreError,
    StoreFullError,
    StoreLockedError,
    StoreReadOnlyError,
)

# A reindex replaces every page, and keeps the cached vectors that it can still read.
_REINDEX = "klaw reindex"
_START_OVER = "move it away and run `klaw index`; it will be rebuilt from your files"
#: The hint for a database with damaged pages.
FIX_PAGES = f"`{_REINDEX}`; if that fails too, {_START_OVER}"
# Another program has dropped or changed a table.
_LACKING = re.compile(r"no such (?:table|column)|table .* has no column named")


@contextmanager
def store_errors(location: str) -> Iterator[None]:
    """Convert an apsw error inside the block to a StoreError."""
    try:
        yield
    except (apsw.BusyError, apsw.LockedError) as error:
        raise StoreLockedError(
            f"{location} is locked by another process", hint="wait for it to finish, then try again"
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
        raise StoreReadOnlyError(
            f"{location} cannot be opened for writing: {error}",
            hint="check its permissions, or choose another directory: --data-dir or KLAW_DATA_DIR",
        ) from error
    except apsw.FullError as error:
        raise _full(location) from error
    except (apsw.CorruptError, apsw.NotADBError) as error:
        hint = FIX_PAGES if isinstance(error, apsw.CorruptError) else _START_OVER
        raise StoreCorruptError(f"{location} is not a valid SQLite database: {error}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise StoreCorruptError(f"{location} contains damaged text: {error.reason}", hint=FIX_PAGES) from error
    except apsw.ThreadingViolationError as error:
        raise StoreError(f"{location}: a snapshot or transaction was used by two threads at once") from error
    except apsw.Error as error:
        raise _store_error(location, error) from error


def _store_error(location: str, error: apsw.Error) -> StoreError:
    """Return the StoreError for an SQLite error without a specific class."""
    # On a full disk, the shared memory of the log, a small file, cannot be created.
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE:
        return _full(location)
    if isinstance(error, apsw.SQLError) and _LACKING.match(str(error)):
        return StoreCorruptError(f"{location} is not what Klaw made: {error}", hint=FIX_PAGES)
    return StoreError(f"{location}: {type(error).__name__}: {error}")


def damaged_vectors(problem: str) -> RetrievalError:
    """Return the error for damaged vectors. The hint is a reindex: `klaw doctor --fix` does not repair pages."""
    return RetrievalError(problem, hint=_REINDEX)


def _full(location: str) -> StoreFullError:
    return StoreFullError(f"no space left for {location}; nothing was changed", hint="free some space, then try again")
