"""What is struck out, what is left, and that no pattern can hold Klaw up."""

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from klaw_core.conversations.redaction import BUILTIN_PATTERNS, REDACTED, UNREADABLE, Redactor

A, B = "Ab0" * 20, "x9Z" * 20
SECRETS = [
    f"sk-{A[:40]}",
    f"sk-ant-api03-{A[:40]}",
    f"ghp_{A[:36]}",
    f"github_pat_{A[:30]}",
    f"glpat-{A[:20]}",
    "AKIA" + "Q7" * 8,
    f"AIza{A[:35]}",
    f"xoxb-{A[:20]}",
    f"sk_live_{A[:24]}",
    f"hf_{A[:34]}",
    f"npm_{A[:36]}",
    f"pypi-{A[:55]}",
    f"123456789:{A[:35]}",
    f"eyJ{A[:12]}.{A[:20]}.{B[:20]}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{A}\n{B}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN PRIVATE KEY-----\n{A}",
]
PIECES = [
    "postgres://anna:hunter2@db",
    "gho_",
    "ghs_",
    "github_pat_",
    A[:36],
    B,
    "1",
    "12345678",
    ":",
    "://",
    "anna",
    ":hunter2",
    "@db",
    " ",
    "\n",
    "%20",
    "Bearer ",
    "bEArer+",
    "rk_test_",
    "ASIA",
    "xoxz-",
]
HARMLESS = [
    "We met at 10:30 on 2026-02-24 at https://example.org/a?b=c:d@e.",
    "the sk-learn package, a ghp_ prefix, AKIA alone, and task-list",
    "The bearer of this letter is trustworthy.",
    "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
    "",
]


@pytest.mark.parametrize("secret", SECRETS)
def test_each_line_of_a_document_keeps_its_number(secret):
    text = f"one\ntwo ({secret}) too\n\nthree"
    found = Redactor().lines(text)
    assert secret.split("\n")[0] not in found
    assert len(found.split("\n")) == len(text.split("\n"))
    assert "\nthree" in found or "END" not in secret


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_redacted_and_the_text_around_it_stays(secret):
    assert Redactor().text(f"Use ({secret}) soon.") in {f"Use ({REDACTED}) soon.", f"Use ({REDACTED}"}


@given(st.lists(st.sampled_from([*SECRETS, *HARMLESS, *PIECES]), max_size=8).map("".join))
def test_law_no_matching_pattern_is_skipped(text):
    expected = text
    for pattern in BUILTIN_PATTERNS:
        expected = regex.sub(pattern, REDACTED, expected)
    assert Redactor().text(text) == expected


def test_the_prefix_of_a_secret_stays():
    assert Redactor().text(f"Authorization: Bearer {A}") == f"Authorization: Bearer {REDACTED}"
    assert Redactor().text("postgres://anna:hunter2@db/x") == f"postgres://{REDACTED}@db/x"


@pytest.mark.parametrize("text", HARMLESS)
def test_texts_without_secrets_are_not_changed(text):
    assert Redactor().text(text) == text


def test_every_builtin_pattern_redacts_its_example():
    texts = [*SECRETS, f"Bearer {A}", "ftp://a:bcd@host"]
    for pattern in BUILTIN_PATTERNS:
        assert any(Redactor([pattern]).text(text) != text for text in texts), pattern


def test_texts_in_metadata_are_redacted_at_any_depth():
    before = {"key": f"sk-{A}", "list": [1, None, True, {"deep": f"a ghp_{A[:36]}"}], "n": 1.5}
    after = {"key": REDACTED, "list": [1, None, True, {"deep": f"a {REDACTED}"}], "n": 1.5}
    assert Redactor().metadata(before) == after


def test_a_pattern_that_takes_too_long_redacts_the_whole_text():
    begun = time.monotonic()
    assert Redactor([r"(?:a|a|aa)+$x"]).text("a" * 60 + "!") == UNREADABLE
    assert time.monotonic() - begun < 10


def test_no_builtin_pattern_is_slow_on_a_megabyte():
    for filler in ("a", "sk-", "eyJa.", "://a:", "-----BEGIN ", "1234567890:", "bearer "):
        text = filler * (1_000_000 // len(filler))
        assert UNREADABLE not in Redactor().text(text), filler


def test_different_patterns_have_different_recipes():
    recipes = [Redactor(patterns).recipe for patterns in ((), ("a",), ("b",), ("a", "b"), BUILTIN_PATTERNS)]
    assert len(set(recipes)) == len(recipes)
