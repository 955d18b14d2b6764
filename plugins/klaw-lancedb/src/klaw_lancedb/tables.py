"""Tables of vectors in LanceDB. A row has a key, the number of the batch that added it, the vector, and its labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import lancedb
import numpy as np
import pyarrow as pa
from lancedb.index import IvfFlat, IvfRq
from lancedb.table import LanceTable

from klaw_core import RetrievalError, ThreadLock, Vector, own_directory
from klaw_store_sqlitevec.outside import Changes, Found, OutsideIndex, TableRecord, Wanted

#: The process that imported LanceDB. A forked child lacks LanceDB's threads and would hang.
_PROCESS = os.getpid()
#: An old version of a table is kept this long, because a search may still be reading it.
_MAX_SEARCH_TIME = timedelta(hours=1)
# The maximum part of a table outside of its approximate index, which is compared row by row.
_MAX_UNINDEXED = 0.2
# The number of candidates per result of the approximate index, whose original vectors are compared.
_REFINED = 10
# The same with conditions: what passes may all be far from the question, where the codes tell little apart.
_REFINED_AMONG = 100
# RaBitQ, the quantization of IVF_RQ, needs a dimension that is a multiple of eight.
_GROUP = 8
_READ_AT_ONCE = 8_192
# The column of labels; tables of earlier versions lack it.
_LABELS = "labels"
_MESSAGE = re.compile(r'\bmessage: "([^"]+)"')
_MAX_REASON_CHARACTERS = 200
#: Shorter than LanceDB's own limits, so that an unreachable storage does not block writers of klaw.db for minutes.
_PATIENCE = {"connect_timeout": "5s", "timeout": "30s", "client_max_retries": "3", "client_retry_timeout": "30"}


class LanceTables(OutsideIndex):
    """The tables in the database ``uri`` that belong to one data directory. Safe to use from several threads."""

    def __init__(self, uri: str, storage: Mapping[str, str], data_dir: Path, approximate_from: int) -> None:
        remote = "://" in uri
        is_own = not (remote or Path(uri).is_absolute())
        self._uri = str(own_directory(data_dir, uri)) if is_own else uri
        self._storage = {**_PATIENCE, **storage} if remote else dict(storage)
        self._approximate_from = approximate_from
        self._connection: lancedb.DBConnection | None = None
        self._open: dict[str, LanceTable] = {}
        self._lock = ThreadLock("the list of open tables")

    def apply(self, table: TableRecord, changes: Changes) -> int:
        """Append the changes, and return the new version of the table. Create the table if necessary."""
        with self._translated("written"):
            if table.version:
                opened = self._at_least(table)
                opened.add(_rows(changes, opened.schema))
            else:  # an existing table comes from a transaction that was rolled back
                rows = _rows(changes, _schema(table.dimension))
                opened = self._connect().create_table(table.name, rows, mode="overwrite")
                self._keep(table.name, opened)
            return int(opened.version)

    def copy(self, table: TableRecord, name: str, alive: Mapping[int, int]) -> int:
        """Create a table ``name`` from the valid rows, given the batch of each key; return its version."""
        with self._translated("written"):
            source = self._at_least(table)
            schema = pa.schema(list(source.schema))  # without the metadata, which is of the old version
            reader = source.search().select(schema.names).to_batches(_READ_AT_ONCE)
            batches = (_only_alive(batch, alive).cast(schema) for batch in reader)
            made = self._connect().create_table(name, pa.RecordBatchReader.from_batches(schema, batches))
            self._keep(name, made)
            return int(made.version)

    def settle(self, table: TableRecord) -> int:
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
        with self._translated("read"):
            return int(self._at_least(table).count_rows())

    def nearest(self, table: TableRecord, vector: Vector, limit: int, wanted: Wanted, *, exact: bool) -> Found:
        """Return the nearest rows, including invalid ones.

        ``exact`` compares every vector; otherwise the approximate index, if there is one, finds the candidates.
        """
        with self._translated("searched"):
            opened = self._at_least(table)
            query = opened.search(vector, vector_column_name="vector").distance_type("cosine")
            query = query.select(["key", "batch", "_distance"]).limit(limit)
            if conditions := _conditions(wanted, opened.schema):
                query = query.where(conditions, prefilter=True)
            exact = exact or wanted.keys is not None
            refined = _REFINED_AMONG if conditions else _REFINED
            query = query.bypass_vector_index() if exact else query.refine_factor(refined)
            found = query.to_arrow()
            scores = 1.0 - found["_distance"].to_numpy()
            return Found(found["key"].to_numpy(), found["batch"].to_numpy(), scores.astype(np.float32))

    def read_batches(self, table: TableRecord) -> Iterator[tuple[int, int]]:
        """Yield the key and the batch number of every row, including invalid ones."""
        with self._translated("read"):
            reader = self._at_least(table).search().select(["key", "batch"]).to_batches(_READ_AT_ONCE)
            for batch in reader:
                yield from zip(batch["key"].to_pylist(), batch["batch"].to_pylist(), strict=True)

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

    def last_written(self, name: str) -> datetime:
        """Return the time of the table's newest version."""
        with self._translated("read"):
            return max(_aware(version["timestamp"]) for version in self._connect().open_table(name).list_versions())

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
    whole, vector = pa.int64(), pa.list_(pa.float32(), dimension)
    return pa.schema([("key", whole), ("batch", whole), ("vector", vector), (_LABELS, pa.list_(whole))])


def _rows(changes: Changes, schema: pa.Schema) -> pa.Table:
    """Return the changes in the columns of a table; an older one has no labels."""
    flat = pa.array(np.ascontiguousarray(changes.vectors, np.float32).reshape(-1))
    columns = [pa.array(changes.keys), pa.array(np.full(len(changes.keys), changes.batch, np.int64))]
    columns.append(pa.FixedSizeListArray.from_arrays(flat, changes.vectors.shape[1]))
    columns.append(pa.array(changes.labels, pa.list_(pa.int64())))
    names = ["key", "batch", "vector", _LABELS]
    return pa.Table.from_arrays(columns, names=names).select(schema.names)


def _conditions(wanted: Wanted, schema: pa.Schema) -> str:
    """Return what is wanted in SQL; empty if everything is."""
    if wanted.keys is not None:
        return f"key IN ({_listed(wanted.keys.tolist())})"
    labels = wanted.labels if _LABELS in schema.names else ()
    return " AND ".join(f"array_has_any({_LABELS}, [{_listed(sorted(each))}])" for each in labels)


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


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
