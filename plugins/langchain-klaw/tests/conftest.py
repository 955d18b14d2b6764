"""The tests need LangChain's own (``nox -s frameworks`` brings them); other sessions leave this directory out."""

from importlib.util import find_spec

import pytest

if find_spec("langchain_tests") is None or find_spec("pytest_asyncio") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def words_only(tmp_path):
    from klaw_core import Memory, load_config

    overrides = {"memory": {"embedding": {"type": "none"}}}
    with Memory.open(load_config(data_dir=tmp_path / "words", overrides=overrides)) as memory:
        yield memory
