"""What plugins keep in the data directory is not written through a link that others may have planted either."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from klaw_core import KlawError, StoreReadOnlyError, own_directory
from klaw_embed_openai.batches import BatchJobs
from klaw_embed_openai.options import OpenAIOptions
from klaw_embed_openai.server import OpenAIServer
from klaw_facts.journal import FactsJournal
from klaw_serve.running import only_server
from klaw_serve.tokens import Tokens
from klaw_sessions.failures import FailureLog
from klaw_store_sqlitevec.store import SqliteStore
from klaw_watch.state import WatchDirectory, WatchState


def lance(data: Path) -> None:
    from klaw_lancedb.tables import LanceTables  # LanceDB takes seconds to import

    LanceTables("lance", {}, data, 1)


def serve(data: Path) -> None:
    with only_server(data):
        pass


def lock(data: Path) -> None:
    with SqliteStore(data / "klaw.db").lock("embedding"):
        pass


def turn(data: Path) -> None:
    with FactsJournal(None, data / "facts").turn():
        pass


def batch(data: Path) -> None:
    server = OpenAIServer(OpenAIOptions(url="http://127.0.0.1:1", dimension=8, batch_min_texts=1, api_key="k"))
    BatchJobs(server, data / "batches").rows(["a text"])


def watch(data: Path) -> None:
    WatchDirectory.of(data).write(WatchState(1, "now"))


#: What is in the data directory, whether it is a directory, and what writes it.
PLACES: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "agents/ann": (True, lambda data: Tokens(data).make("ann")),
    "batches": (True, batch),
    "embedding.lock": (True, lock),
    "facts": (True, turn),
    "hook.log": (False, lambda data: FailureLog.of(data).add("hook", "failed")),
    "lance": (True, lance),
    "serve.lock": (False, serve),
    "watch": (True, watch),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_planted_link_is_not_written_through(tmp_path, name):
    is_directory, write = PLACES[name]
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (data / name).parent.mkdir(parents=True)
    if is_directory:
        elsewhere.mkdir()
    (data / name).symlink_to(elsewhere)
    (data / name).parent.chmod(0o777)
    if name == "hook.log":
        write(data)
    else:
        with pytest.raises(KlawError, match="a link that another user may have created"):
            write(data)
    assert not list(elsewhere.iterdir()) if is_directory else not elsewhere.exists()


def test_a_directory_that_is_asked_for_says_what_to_do(tmp_path):
    assert own_directory(tmp_path, "a", "b") == tmp_path / "a" / "b"
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    assert own_directory(tmp_path, "a", "b") == tmp_path / "a" / "b"
    tmp_path.chmod(0o777)
    with pytest.raises(StoreReadOnlyError, match=r"a is a link that another user may have created") as raised:
        own_directory(tmp_path, "a", "b")
    assert "chmod go-w" in raised.value.hint
