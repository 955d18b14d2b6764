"""The one tree of errors that Klaw raises on purpose.

    KlawError
    ├── ConfigError                 the configuration is wrong; every problem at once
    ├── PluginError                 a plugin is missing, broken or does not fit
    │   ├── PluginNotFoundError     nothing provides what the configuration names
    │   ├── PluginConflictError     two plugins provide the name that is used
    │   └── PluginContractError     a component returned what its Protocol forbids
    ├── StoreError                  the database cannot be used as asked
    │   ├── StoreLockedError        another process holds the write lock
    │   ├── RetryableStoreError     another writer or a lost connection ended the transaction; retry it
    │   ├── StoreReadOnlyError      the file or its directory cannot be written
    │   ├── StoreFullError          the disk is full
    │   └── StoreCorruptError       a file is not what Klaw has written
    │       └── DatabaseCorruptError    the database of the store is damaged; a reindex replaces it
    ├── VectorSpaceError            vectors of two different models would be mixed
    ├── EmbeddingError              a text could not be turned into a vector
    │   ├── ModelNotFoundError      no model of that name on this machine
    │   ├── ModelCorruptError       a model file does not match its SHA-256
    │   └── EmbedderUnavailableError  the embedder's server or runtime does not answer
    ├── LanguageModelError          a language model did not answer as it was asked
    ├── RetrievalError              a retriever could not answer
    ├── QueryError                  the query cannot be searched for
    ├── RecordError                 invalid record
    ├── ConversionError             a file could not be converted to text
    ├── NotFoundError               no such chunk, file, memory or workspace
    └── WorkspaceError              a directory of notes cannot be indexed

A message says what happened and where; ``hint`` is what fixes it, usually a command. Anything else
that escapes from Klaw is a defect.
"""

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = [
    "ConfigError",
    "ConversionError",
    "DatabaseCorruptError",
    "EmbedderUnavailableError",
    "EmbeddingError",
    "KlawError",
    "LanguageModelError",
    "ModelCorruptError",
    "ModelNotFoundError",
    "NotFoundError",
    "PluginConflictError",
    "PluginContractError",
    "PluginError",
    "PluginNotFoundError",
    "QueryError",
    "RecordError",
    "RetrievalError",
    "RetryableStoreError",
    "StoreCorruptError",
    "StoreError",
    "StoreFullError",
    "StoreLockedError",
    "StoreReadOnlyError",
    "VectorSpaceError",
    "WorkspaceError",
    "as_klaw_error",
    "isolated",
    "quoted",
    "reason",
]

T = TypeVar("T")

# Characters that are read after the end of a quotation, so that a secret that begins in it is recognised.
_MAX_SECRET = 2_000


def _redacted(text: str) -> str:
    from klaw_redaction import Redactor  # here, because most programs need no error

    return Redactor().text(text) if text else text


def quoted(value: object, most: int = 80) -> str:
    """Return the ``repr`` of a value for a message, cut to ``most`` characters, without the secrets of known formats.

    They are redacted before the text is cut, because a part of a secret is not recognised.
    """
    return _redacted(repr(value)[: most + _MAX_SECRET])[:most]


class KlawError(Exception):
    """Base of every error that Klaw raises on purpose.

    ``message`` says what happened and where, in one line; ``hint`` says how to fix it (may be empty). Both may quote
    what the caller passed, and errors are logged and shown to models, so secrets of known forms are redacted in them.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        self.message = _redacted(message)
        self.hint = _redacted(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class ConfigError(KlawError):
    """The configuration is wrong. ``problems`` lists each problem with its place."""

    def __init__(self, problems: Sequence[str], *, hint: str = "") -> None:
        self.problems = tuple(map(_redacted, problems))
        super().__init__("; ".join(self.problems), hint=hint)


class PluginError(KlawError):
    """A plugin is missing, broken, or does not fit the others."""


class PluginNotFoundError(PluginError):
    """No installed plugin provides the component that the configuration names.

    ``extras`` are the extras of the distribution ``klaw`` that install it, empty for a third party's component.
    ``near`` is the most similar known name, empty if none is similar.
    """

    def __init__(self, message: str, *, hint: str = "", extras: Sequence[str] = (), near: str = "") -> None:
        super().__init__(message, hint=hint)
        self.extras = tuple(extras)
        self.near = near


class PluginConflictError(PluginError):
    """Two installed plugins provide the same name, and that name is used."""


class PluginContractError(PluginError):
    """A component violated its Protocol (a wrong shape, NaN, a span out of bounds)."""


class StoreError(KlawError):
    """The database cannot do what was requested."""


class StoreLockedError(StoreError):
    """Another process holds the write lock for longer than the busy timeout."""


class RetryableStoreError(StoreError):
    """Another writer, or a lost connection, ended the transaction: it changed nothing, and can succeed if retried."""


class StoreReadOnlyError(StoreError):
    """The database or its directory cannot be written."""


class StoreFullError(StoreError):
    """The disk is full; the transaction was rolled back."""


class StoreCorruptError(StoreError):
    """A file is not what Klaw has written: the database, or a file that was edited by hand."""


class DatabaseCorruptError(StoreCorruptError):
    """The database of the store is damaged. ``klaw reindex`` replaces it."""


class VectorSpaceError(KlawError):
    """The vectors in the index and the configured embedder belong to different models."""


class EmbeddingError(KlawError):
    """A text could not be turned into a vector."""


class ModelNotFoundError(EmbeddingError):
    """No model of the configured name is on this machine."""


class ModelCorruptError(EmbeddingError):
    """A model file does not match the SHA-256 that its manifest records."""


class EmbedderUnavailableError(EmbeddingError):
    """The embedder's server or runtime does not respond."""


class LanguageModelError(KlawError):
    """A language model cannot be called, does not respond in time, or returns invalid data."""


class RetrievalError(KlawError):
    """A retriever could not answer; the other retrievers continue without it."""


class QueryError(KlawError):
    """The query cannot be searched for."""


class RecordError(KlawError):
    """Invalid record: not strict JSON, too large, or a field is missing or wrong."""


class ConversionError(KlawError):
    """A file could not be converted to text; the message is the reason, such as ``is encrypted``.

    ``keep``: the next attempt may succeed (it took too long, for example), so the indexed text of the file stays.
    """

    def __init__(self, message: str, *, hint: str = "", keep: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.keep = keep


class NotFoundError(KlawError):
    """No such chunk, file, saved memory or workspace."""


class WorkspaceError(KlawError):
    """A source cannot be indexed: a directory of notes, or a plugin's."""


# A plugin's message may contain a whole document.
_MAX_REASON_CHARACTERS = 500


def reason(error: BaseException) -> str:
    """Return the type and the first line of an exception, even if its ``__str__`` raises."""
    name = type(error).__name__
    try:
        line = str(error).strip().partition("\n")[0]
    except Exception:  # noqa: BLE001  # an exception of a plugin, whose __str__ is its own
        return name
    return f"{name}: {line[:_MAX_REASON_CHARACTERS]}" if line else name


def as_klaw_error(error: BaseException) -> KlawError:
    """Return the error itself if it is a KlawError, otherwise a PluginError that describes it."""
    return error if isinstance(error, KlawError) else PluginError(reason(error))


#: What may arise in any public call, and becomes a KlawError there: a method imports its own modules and looks at
#: files, and neither works if, for instance, no file can be opened any more.
ESCAPING = (OSError, ImportError)
NO_DESCRIPTOR = (errno.EMFILE, errno.ENFILE)
RAISE_LIMIT = "close files or connections, or raise the limit of open files (ulimit -n)"


def of_system(error: OSError | ImportError) -> KlawError:
    """Return the KlawError for an error of the system, or of an import, in one line."""
    if isinstance(error, ImportError):
        return PluginError(f"a part of Klaw cannot be imported: {reason(error)}", hint="klaw plugins")
    hint = RAISE_LIMIT if error.errno in NO_DESCRIPTOR else "klaw doctor"
    what = "a file" if error.filename is None else f"{quoted(error.filename, 200)}"
    return StoreError(f"{what} cannot be used: {error.strerror or reason(error)}", hint=hint)


def check_base(component: object, base: type[T], who: str) -> T:
    """Return the component. Raise PluginContractError unless it inherits ``base`` and defines each abstract method."""
    if not isinstance(component, base):
        what = f"{who} is a {type(component).__qualname__}, which does not inherit klaw_core.{base.__name__}"
        raise PluginContractError(what, hint=f"class NAME({base.__name__}): ...")
    for ability, name in _undefined(component):
        what = f"{who} is a {type(component).__qualname__}, which inherits {ability} but does not define {name}"
        raise PluginContractError(what, hint=f"define {name}, or do not inherit {ability}")
    return component


def _undefined(component: object) -> Iterator[tuple[str, str]]:
    """Yield the abstract methods that a component does not define, each with its class."""
    for name in dir(type(component)):
        method: Any = getattr(type(component), name, None)
        if getattr(method, "__isabstractmethod__", False) and name not in getattr(component, "__dict__", ()):
            yield method.__qualname__.rpartition(".")[0], name


@contextmanager
def isolated(who: str) -> Iterator[None]:
    """Convert exceptions other than KlawError, including SystemExit, into a PluginError that names ``who``."""
    try:
        yield
    except KlawError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"{who}: {reason(error)} (in {module_of(error)})", hint="see `klaw plugins`") from error


def module_of(error: BaseException) -> str:
    """Return the module that raised an exception."""
    from traceback import walk_tb

    *_, (frame, _line) = walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "an unknown module"))
