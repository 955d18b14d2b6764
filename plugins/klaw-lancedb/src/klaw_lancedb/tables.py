"""Tables of vectors in LanceDB. A row has a key, the number of the batch that added it, and the vector.

Rolling back a transaction of SQLite undoes nothing here; :mod:`klaw_lancedb.rows` says which rows are valid.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from attrs import frozen
from lancedb.index import IvfFlat, IvfRq
from lancedb.table import LanceTable
from numpy.typing import NDArray

from klaw_core import Keys, Matrix, RetrievalError, ThreadLock, Vector, own_directory
from klaw_lancedb.rows import TableRecord

#: The process that imported LanceDB. A forked child lacks LanceDB's threads and would hang.
_PROCESS = os.getpid()
_DAY = timedelta(days=1)
#: An old version of a table is kept this long, because a search may still be reading it.
_MAX_SEARCH_TIME = timedelta(hours=1)
# The maximum part of a table outside of its approximate index, which is compared row by row.
_MAX_UNINDEXED = 0.2
# The number of candidates per result of the approximate index, whose original vectors are compared.
_REFINED = 10
# RaBitQ, the quantization of IVF_RQ, needs a dimension that is a multiple of eight.
_GROUP = 8
_READ_AT_ONCE = 8_192
_MESSAGE = re.compile(r'\bmessage: "([^"]+)"')
_MAX_REASON_CHARACTERS = 200
#: Shorter than LanceDB's own limits, so that an unreachable storage does not block writers of klaw.db for minutes.
_PATIENCE = {"connect_timeout": "5s", "timeout": "30s", "client_max_retries": "3", "client_retry_timeout": "30"}


@frozen(eq=False, repr=False)
class Found:
    """The rows that a search returned, nearest first: keys and batch numbers, int64 (n,), and cosines (n,)."""

    keys: Keys
    batches: NDArray[np.int64]
    scores: Vector


class LanceTables:
    """The tables in the database ``uri`` that belong to one data directory. Safe to use from several threads."""

    def __init__(self, uri: str, storage: Mapping[str, str], data_dir: Path, approximate_from: int) -> None:
        remote = "://" in uri
        is_own = not (remote or Path(uri).is_absolute())
        self._uri = str(own_directory(data_dir, uri)) if is_own else uri
        self._storage = {**_PATIENCE, **storage} if remote else dict(storage)
        self._approximate_from = approximate_from
        # Only tables with this prefix are removed as orphans, because other data directories may share the database.
        owner = f"{platform.node()}\0{data_dir.resolve()}"
        self._prefix = f"klaw_{hashlib.sha256(owner.encode()).hexdigest()[:12]}_"
        self._connection: lancedb.DBConnection | None = None
        self._open: dict[str, LanceTable] = {}
        self._lock = ThreadLock("the list of open tables")

    def new_name(self, collection: str) -> str:
        """Return a new name for a table."""
        return f"{self._prefix}{collection}_{secrets.token_hex(8)}"

    def append(self, table: TableRecord, batch: int, keys: Keys, vectors: Matrix) -> int:
        """Append a batch, row i for key i, and return the new version of the table. Create the table if necessary."""
        with self._translated("written"):
            rows = _rows(batch, keys, vectors)
            if table.version:
                opened = self._at_least(table)
                opened.add(rows)
            else:  # an existing table comes from a transaction that was rolled back
                opened = self._connect().create_table(table.name, rows, mode="overwrite")
                self._keep(table.name, opened)
            return int(opened.version)

    def rewrite(self, table: TableRecord, name: str, alive: Mapping[int, int]) -> int:
        """Create a table ``name`` from the valid rows, given the batch of each key; return its version."""
        with self._translated("written"):
            source = self._at_least(table)
            reader = source.search().select(["key", "batch", "vector"]).to_batches(_READ_AT_ONCE)
            schema = _schema(table.dimension)
            batches = (_only_alive(batch, alive).cast(schema) for batch in reader)
            made = self._connect().create_table(name, pa.RecordBatchReader.from_batches(schema, batches))
            self._keep(name, made)
            return int(made.version)

    def index(self, table: TableRecord) -> int:
        """Build or update the approximate index if the table is large enough; return the new version of the table."""
        with self._translated("indexed"):
            opened = self._at_least(table)
            rows = int(opened.count_rows())
            if rows >= self._approximate_from and _unindexed(opened) > _MAX_UNINDEXED * rows:
                opened.optimize(cleanup_older_than=_MAX_SEARCH_TIME)  # merges the files of small appends
                kind = IvfRq if table.dimension % _GROUP == 0 else IvfFlat
                opened.create_index("vector", config=kind(distance_type="cosine"), replace=True)
            return int(opened.version)

    def count(self, table: TableRecord) -> int:
        """Return the number of rows, including invalid ones."""
        if not table.version:
            return 0
        with self._translated("read"):
            return int(self._at_least(table).count_rows())

    def nearest(self, table: TableRecord, vector: Vector, limit: int, keys: Keys | None, *, exact: bool) -> Found:
        """Return the nearest rows, including invalid ones; with ``keys``, only those with these keys.

        ``exact`` compares every vector; otherwise the approximate index, if there is one, finds the candidates.
        """
        with self._translated("searched"):
            query = self._at_least(table).search(vector, vector_column_name="vector").distance_type("cosine")
            query = query.select(["key", "batch", "_distance"]).limit(limit)
            if keys is not None:
                query = query.where(f"key IN ({','.join(map(str, keys.tolist()))})", prefilter=True)
            query = query.bypass_vector_index() if exact or keys is not None else query.refine_factor(_REFINED)
            found = query.to_arrow()
            scores = 1.0 - found["_distance"].to_numpy()
            return Found(found["key"].to_numpy(), found["batch"].to_numpy(), scores.astype(np.float32))

    def read_batches(self, table: TableRecord) -> Iterator[tuple[int, int]]:
        """Yield the key and the batch number of every row, including invalid ones."""
        with self._translated("read"):
            reader = self._at_least(table).search().select(["key", "batch"]).to_batches(_READ_AT_ONCE)
            for batch in reader:
                yield from zip(batch["key"].to_pylist(), batch["batch"].to_pylist(), strict=True)

    def dimension(self, table: TableRecord) -> int:
        """Return the dimension of the table's vectors."""
        with self._translated("read"):
            return int(self._at_least(table).schema.field("vector").type.list_size)

    def names(self) -> set[str]:
        """Return the names of all tables."""
        with self._translated("read"):
            return set(_all_names(self._connect()))

    def drop(self, name: str) -> None:
        """Remove a table and its files, if it exists."""
        with self._translated("written"):
            with self._lock.hold():
                self._open.pop(name, None)
            self._connect().drop_table(name, ignore_missing=True)

    def drop_orphans(self, known: set[str]) -> None:
        """Remove tables that klaw.db does not list and that were not written for a day; failed rebuilds leave them."""
        with self._translated("written"):
            connection = self._connect()
            for name in self.names() - known:
                if not name.startswith(self._prefix):
                    continue
                written = max(version["timestamp"] for version in connection.open_table(name).list_versions())
                if datetime.now(UTC) - _aware(written) > _DAY:
                    connection.drop_table(name, ignore_missing=True)

    def _connect(self) -> lancedb.DBConnection:
        if os.getpid() != _PROCESS:
            raise RetrievalError(
                "LanceDB was loaded before this process was forked, and cannot be used in it",
                hint="start worker processes with the method spawn or forkserver",
            )
        with self._lock.hold():
            if self._connection is None:
                self._connection = lancedb.connect(self._uri, storage_options=self._storage or None)
            return self._connection

    def _at_least(self, table: TableRecord) -> LanceTable:
        """Return the open table in the version that klaw.db names, or a later one."""
        connection = self._connect()
        with self._lock.hold():
            opened = self._open.get(table.name)
        if opened is None:
            opened = connection.open_table(table.name)
            self._keep(table.name, opened)
        if opened.version < table.version:
            opened.checkout_latest()
        return opened

    def _keep(self, name: str, opened: LanceTable) -> None:
        with self._lock.hold():
            self._open[name] = opened

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        """Convert every error of LanceDB, which has no error classes of its own, to RetrievalError."""
        try:
            yield
        except RetrievalError:
            raise
        except Exception as error:
            message = f"the LanceDB database {self._uri} could not be {done}: {_reason(error)}"
            raise RetrievalError(message, hint="`klaw doctor` says why; `klaw reindex` builds it again") from error


def _reason(error: Exception) -> str:
    """Return the innermost message of an error of LanceDB, without the Rust structures around it, or its start."""
    inner = _MESSAGE.findall(str(error))
    return inner[-1] if inner else str(error).partition("\n")[0][:_MAX_REASON_CHARACTERS]


def _schema(dimension: int) -> pa.Schema:
    whole = pa.int64()
    return pa.schema([("key", whole), ("batch", whole), ("vector", pa.list_(pa.float32(), dimension))])


def _rows(batch: int, keys: Keys, vectors: Matrix) -> pa.Table:
    flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
    columns = [pa.array(keys), pa.array(np.full(len(keys), batch, np.int64))]
    columns.append(pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1]))
    return pa.Table.from_arrays(columns, schema=_schema(vectors.shape[1]))


def _only_alive(batch: pa.RecordBatch, alive: Mapping[int, int]) -> pa.RecordBatch:
    rows = zip(batch["key"].to_pylist(), batch["batch"].to_pylist(), strict=True)
    return batch.filter(pa.array([alive.get(key) == number for key, number in rows], pa.bool_()))


def _unindexed(opened: LanceTable) -> int:
    """Return the number of rows outside of the approximate index."""
    for index in opened.list_indices():
        stats = opened.index_stats(index.name)
        if stats is not None:
            return int(stats.num_unindexed_rows)
    return int(opened.count_rows())


def _all_names(connection: lancedb.DBConnection) -> Iterator[str]:
    token = None
    while page := connection.list_tables(page_token=token, limit=1_000):
        yield from page.tables
        token = page.page_token
        if not token:
            return


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.astimezone()
