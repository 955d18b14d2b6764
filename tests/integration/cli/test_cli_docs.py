"""The documentation collection, as a user has it."""

import json

import pytest


@pytest.fixture
def guide(user_home):
    place = user_home / "work" / "guide"
    place.mkdir()
    (place / "install.md").write_text("# Install\n\nUnpack the tarball into /opt.\n", "utf-8")
    (user_home / "work" / "notes").mkdir()
    (user_home / "work" / "notes" / "a.md").write_text("# Tarball\n\nOurs is too large.\n", "utf-8")
    return place


def paths(result):
    return [found["path"] for found in json.loads(result.stdout)]


@pytest.mark.usefixtures("guide")
def test_documentation_is_searched_separately(klaw):
    assert klaw("index", "--collection", "docs", "--version", "1.2", "guide").exit_code == 0
    assert klaw("index", "notes").exit_code == 0
    assert paths(klaw("search", "-c", "docs", "--json", "tarball")) == ["guide/install.md"]
    assert paths(klaw("search", "--json", "tarball")) == ["notes/a.md"]
    assert klaw("get", "guide/install.md:3:1").stdout == "Unpack the tarball into /opt.\n"


def test_the_collection_and_the_version_are_stored(klaw, guide):
    klaw("index", "-c", "docs", "--version", "1.2", "guide")
    (guide / "upgrade.md").write_text("# Upgrade\n\nReplace the tarball.\n", "utf-8")
    assert json.loads(klaw("index", "--json").stdout)["added"] == 1
    assert sorted(paths(klaw("search", "-c", "docs", "--json", "tarball"))) == ["guide/install.md", "guide/upgrade.md"]
    newer = klaw("index", "--json", "-c", "docs", "--version", "1.3", "guide")
    assert json.loads(newer.stdout)["changed"] == 2
    assert klaw("reindex").exit_code == 0
    assert len(paths(klaw("search", "-c", "docs", "--json", "tarball"))) == 2


@pytest.mark.usefixtures("guide")
def test_a_directory_belongs_to_one_collection(klaw):
    klaw("index", "-c", "docs", "guide")
    refused = klaw("index", "guide")
    assert refused.exit_code == 1
    assert "collection 'docs'" in refused.stderr
    assert "klaw forget guide/" in refused.stderr
    assert klaw("forget", "--yes", "guide/").exit_code == 0
    assert klaw("index", "guide").exit_code == 0


@pytest.mark.usefixtures("guide")
def test_an_unknown_collection_is_named(klaw):
    refused = klaw("search", "-c", "doc", "x")
    assert refused.exit_code == 1
    assert "unknown collection 'doc'" in refused.stderr
    refused = klaw("index", "-c", "Doc!", "guide")
    assert refused.exit_code == 1
    assert "invalid collection name 'Doc!'" in refused.stderr


def test_collection_and_version_need_a_directory(klaw):
    assert klaw("index", "--version", "1.2").exit_code == 2


def test_status_lists_collections_that_a_plain_search_does_not_search(klaw, guide):
    klaw("index", "-c", "docs", "guide")
    klaw("index", "notes")
    text, status = klaw("status").stdout, json.loads(klaw("status", "--json").stdout)
    assert status["collections"] == {"guide": ["docs"], "notes": ["memory"]}
    assert f"~/{guide.relative_to(guide.parents[1])} (in the collection docs)\n" in text
    assert text.count("collection") == 1
