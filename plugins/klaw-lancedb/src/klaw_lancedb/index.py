"""The index ``lancedb``: vectors in LanceDB, and rows in klaw.db that say which vectors are valid."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from klaw_lancedb.options import LanceOptions
from klaw_store_sqlitevec.outside import OutsideIndex, OutsideVectors


class LanceIndex(OutsideVectors):
    """Stores vectors in LanceDB. One object serves all connections to a file.

    With an ``agent``, its name is a folder of the database on object storage. A local directory is already in the data
    directory of the agent.
    """

    def __init__(self, options: LanceOptions, data_dir: Path, agent: str = "") -> None:
        uri = f"{options.uri.rstrip('/')}/{agent}" if agent and "://" in options.uri else options.uri
        super().__init__("lancedb", data_dir, options.buffer, partial(_connect, options, uri, data_dir))


def _connect(options: LanceOptions, uri: str, data_dir: Path) -> OutsideIndex:
    from klaw_lancedb.tables import LanceTables  # importing LanceDB takes a second

    return LanceTables(uri, options.storage, data_dir, options.approximate_from)
