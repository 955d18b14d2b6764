"""``klaw models`` through ``klaw`` itself; what it does in detail is tested beside its package."""

import json


def test_list_names_the_known_models(klaw):
    result = klaw("models", "list", "--json")

    assert result.exit_code == 0
    assert {"all-MiniLM-L6-v2", "bge-small-en-v1.5"} <= {model["name"] for model in json.loads(result.stdout)}


def test_verify_checks_the_hashes_of_installed_models(klaw):
    assert klaw("models", "verify").exit_code == 0


def test_remove_names_a_missing_model(klaw):
    result = klaw("models", "remove", "no-such-model")

    assert result.exit_code == 1
    assert "no-such-model" in result.stderr


def test_models_without_a_subcommand_shows_its_help(klaw):
    result = klaw("models")

    assert result.exit_code == 2
    assert "verify" in result.stderr
