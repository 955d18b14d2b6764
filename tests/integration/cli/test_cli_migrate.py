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


@pytest.mark.parametrize("form", ["sqlite://{}/klaw.db", "{}"])
def test_a_missing_source_is_named_and_nothing_is_created(klaw, tmp_path, form):
    (tmp_path / "typo").mkdir()
    result = klaw("migrate", form.format(tmp_path / "typo"), f"sqlite://{tmp_path / 'target' / 'klaw.db'}")
    assert result.exit_code == 1
    assert f"{tmp_path / 'typo' / 'klaw.db'} does not exist" in result.stderr
    assert sorted(tmp_path.rglob("klaw.db")) == []


def test_a_bad_target_is_named_although_the_source_is_missing(klaw, tmp_path):
    result = klaw("migrate", f"sqlite://{tmp_path / 'klaw.db'}", "mysql://host/klaw")
    assert "mysql://… is not the address of a memory" in result.stderr


def test_a_directory_is_the_address_of_its_memory(klaw, tmp_path):
    saved = klaw("--data-dir", str(tmp_path / "one"), "save", "The kiln fires at noon.")
    assert saved.exit_code == 0, saved.stderr
    (tmp_path / "two").mkdir()
    result = klaw("migrate", str(tmp_path / "one"), str(tmp_path / "two"))
    assert result.exit_code == 0, result.stderr
    assert "saved: 1\n" in result.stdout
    assert "kiln" in klaw("--data-dir", str(tmp_path / "two"), "search", "kiln").stdout


def test_an_unreachable_server_is_named(klaw, tmp_path):
    (tmp_path / "klaw.db").touch()
    result = klaw("migrate", f"sqlite://{tmp_path / 'klaw.db'}", "postgresql://ada:hidden@127.0.0.1:1/klaw")
    assert result.exit_code == 1
    assert "cannot connect to postgresql://127.0.0.1:1/klaw" in result.stderr
    assert "hidden" not in result.stderr
