"""A database may be a link to a file elsewhere; a link that leads nowhere is named, with what to do."""

import pytest

from klaw_core import StoreError
from klaw_store_sqlitevec.store import SqliteStore


@pytest.fixture
def link(tmp_path):
    return tmp_path / "data dir" / "klaw.db"


@pytest.mark.parametrize("chain", [["klaw.db"], ["other.db", "klaw.db"]], ids=["itself", "two"])
def test_a_link_that_leads_to_itself_is_named(link, chain):
    link.parent.mkdir()
    for name, target in zip(["klaw.db", *chain], chain, strict=False):
        (link.parent / name).symlink_to(target)
    with pytest.raises(StoreError, match="leads to itself") as caught:
        SqliteStore(link)
    assert str(link) in caught.value.message
    assert f"rm '{link}'" in caught.value.hint


def test_a_link_into_a_directory_that_does_not_exist_is_named(link, tmp_path):
    link.parent.mkdir()
    link.symlink_to(tmp_path / "unmounted" / "klaw.db")
    with pytest.raises(StoreError, match="there is no directory") as caught:
        SqliteStore(link)
    for told in (str(link), str(tmp_path / "unmounted" / "klaw.db")):
        assert told in caught.value.message
    assert f"rm '{link}'" in caught.value.hint
    (tmp_path / "unmounted").mkdir()
    SqliteStore(link).close()
    assert (tmp_path / "unmounted" / "klaw.db").stat().st_size


def test_a_path_in_a_link_that_leads_to_itself_is_an_error_of_the_store(link):
    link.parent.symlink_to(link.parent.name)
    with pytest.raises(StoreError):
        SqliteStore(link)
