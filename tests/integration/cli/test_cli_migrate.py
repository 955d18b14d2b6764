"""``klaw migrate``: what it refuses. What it does is tested with a server, beside the store ``postgres``."""

import pytest


@pytest.fixture(autouse=True)
def installed():
    pytest.importorskip("psycopg", reason="needs klaw[postgres]")
    pytest.importorskip("klaw_store_postgres", reason="needs klaw[postgres]")


@pytest.mark.parametrize("places", [("mysql://ada:hidden@host/klaw", "sqlite://{}"), ("sqlite://{}", "notes")])
def test_an_invalid_location_is_rejected(klaw, tmp_path, places):
    result = klaw("migrate", *(place.format(tmp_path / "klaw.db") for place in places))
    assert result.exit_code == 1
    assert "is not the address of a memory" in result.stderr
    assert "postgresql://USER@HOST/DATABASE" in result.stderr
    assert "hidden" not in result.stderr


def test_an_unreachable_server_is_named(klaw, tmp_path):
    result = klaw("migrate", f"sqlite://{tmp_path / 'klaw.db'}", "postgresql://ada:hidden@127.0.0.1:1/klaw")
    assert result.exit_code == 1
    assert "cannot connect to postgresql://127.0.0.1:1/klaw" in result.stderr
    assert "hidden" not in result.stderr
