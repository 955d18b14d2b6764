"""``klaw models`` through ``klaw`` itself; what it does in detail is tested beside its package."""

import json


def test_list_names_the_known_models(klaw):
    result = klaw("models", "list", "--json")

    assert result.exit_code == 0
    assert {"all-MiniLM-L6-v2", "bge-small-en-v1.5"} <= {model["name"] for model in json.loads(result.stdout)}


def test_verify_hashes_what_is_here(klaw):
    assert klaw("models", "verify").exit_code == 0


def test_remove_names_what_is_not_there(klaw):
    result = klaw("models", "remove", "no-such-model")

    assert result.exit_code == 1
    assert "no-such-model" in result.stderr


def test_models_alone_shows_what_it_can_do(klaw):
    result = klaw("models")

    assert result.exit_code == 2
    assert "verify" in result.stderr
