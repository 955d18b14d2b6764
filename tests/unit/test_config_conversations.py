"""The table ``memory.conversations``: defaults, values, and every problem by its place."""

import os

import pytest

from klaw_core import ConfigError
from klaw_core.config.load import load_config
from klaw_core.config.settings import keys_of
from klaw_core.config.tables import DEFAULTS
from klaw_core.values.config import ConversationSettings

ENVIRONMENT = {"KLAW_CONFIG": os.devnull}


def load(**table):
    overrides = {"memory": {"conversations": table}}
    return load_config(environment=ENVIRONMENT, overrides=overrides).conversations


def test_an_empty_file_means_the_defaults():
    assert load_config(environment=ENVIRONMENT).conversations == ConversationSettings()
    assert tuple(DEFAULTS["memory"]["conversations"]) == keys_of(ConversationSettings)


def test_configured_values_are_used():
    settings = load(
        include_roles=["tool"], redact=["a+"], redact_secrets=False, max_tokens=100, packed_tokens=50, context_tokens=0
    )
    assert settings == ConversationSettings(("tool",), ("a+",), False, False, 100, 50, 0)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"roles": []}, "unknown key memory.conversations.roles"),
        ({"include_roles": ["robot"]}, "memory.conversations.include_roles: expected an array of roles"),
        ({"include_roles": "user"}, "memory.conversations.include_roles: expected an array of roles"),
        ({"redact": "a"}, "memory.conversations.redact: expected an array of strings"),
        ({"redact": ["ok", "(("]}, r"memory.conversations.redact\[1\]: not a regular expression"),
        ({"redact": ["a*"]}, r"memory.conversations.redact\[0\]: the pattern matches the empty string"),
        ({"redact_secrets": 1}, "memory.conversations.redact_secrets: expected true or false"),
        ({"redact_notes": "yes"}, "memory.conversations.redact_notes: expected true or false"),
        ({"max_tokens": 7}, "memory.conversations.max_tokens: expected a whole number of at least 8"),
        ({"max_tokens": True}, "memory.conversations.max_tokens: expected a whole number"),
        ({"packed_tokens": -1}, "memory.conversations.packed_tokens: expected a whole number of at least 0"),
        ({"context_tokens": "x"}, "memory.conversations.context_tokens: expected a whole number of at least 0"),
    ],
)
def test_an_invalid_value_is_reported_with_its_place(table, problem):
    with pytest.raises(ConfigError, match=problem):
        load(**table)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigError) as caught:
        load(redact=1, max_tokens=1, unknown=1)
    assert len(caught.value.problems) == 3


def test_a_value_that_is_not_a_table_is_rejected():
    with pytest.raises(ConfigError, match=r"memory\.conversations: expected a table"):
        load_config(environment=ENVIRONMENT, overrides={"memory": {"conversations": 1}})


def test_a_project_that_is_not_trusted_may_not_choose_what_is_redacted(tmp_path):
    (tmp_path / "klaw.toml").write_text("[memory.conversations]\nredact_secrets = false\n")
    with pytest.raises(ConfigError, match=r"a project may not set memory\.conversations\.redact_secrets"):
        load_config(environment=ENVIRONMENT, directory=tmp_path)
