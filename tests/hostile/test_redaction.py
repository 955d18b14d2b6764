"""Secrets in every place of a message, and patterns that never end: no secret reaches klaw.db, and nothing hangs."""

from __future__ import annotations

import json
import os

import pytest
import regex

from klaw_core import Chat, Memory, Message
from klaw_core.config.load import load_config
from klaw_redaction import REDACTED, UNREADABLE, Redactor
from klaw_redaction.forms import BUILTIN_PATTERNS
from klaw_testing.values import MOMENT

CHAT = Chat("telegram", "1")
WORDS_ONLY = {"embedding": {"type": "none"}, "retrieval": [{"type": "fts5"}]}
TAIL = "Zq7Yw3Xv9Ut5Sr1Pn8Mk4Lj6Hg2Fd0Ca"  # 32 characters that are found in no other place
SECRETS = {
    "openai": f"sk-{TAIL}",
    "anthropic": f"sk-ant-api03-{TAIL}",
    "github": f"ghp_{TAIL}abcdef",
    "github-fine": f"github_pat_{TAIL}",
    "gitlab": f"glpat-{TAIL}",
    "google": f"AIza{TAIL}abc",
    "slack": f"xoxb-{TAIL}",
    "stripe": f"sk_live_{TAIL}",
    "hugging-face": f"hf_{TAIL}",
    "npm": f"npm_{TAIL}abcd",
    "pypi": f"pypi-{TAIL}{TAIL}",
    "telegram": f"1234567890:{TAIL}abc",
    "jwt": f"eyJ{TAIL}.{TAIL}.{TAIL}",
    "bearer": f"Authorization: Bearer {TAIL}",
    "url": f"postgres://user:{TAIL}@host/db",
    "private-key": f"-----BEGIN RSA PRIVATE KEY-----\n{TAIL}\n-----END RSA PRIVATE KEY-----",
    "torn-key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{TAIL}\n",
}
#: What may stand around a secret, so that a person still reads it as one.
AROUND = (
    "{}", "key={}", '"{}"', "`{}`", "({})", "{},", "<{}>", "my key is {} ok", "内{}内", "\u200b{}\u200b", "\t{}\n",
    "export KEY={}; run", "[{}](x)", "#{}", "\u00a0{}", "*{}*", "\x00{}\x00",
    "https://host/?a=%20{}&b=%3D{}", '{{"a":"\\n{}","b":"\\u4e2d{}"}}', "密钥是{}。",
)  # fmt: skip
#: Patterns that a person may configure, and on which a matcher that backtracks takes for ever.
CATASTROPHIC = (
    r"(a+)+$", r"(a|aa)+$", r"(a|a?)+$", r"(.*a){20}$", r"(a*)*b", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(x+x+)+y",
    r"(?:a?){40}a{40}", r"((a{1,20}){1,20}){1,20}$", r"(\w+\s?)+$", r"(?s)(.+)+!",
)  # fmt: skip


def everything(root) -> bytes:
    return b"".join(path.read_bytes() for path in (root / "data").rglob("klaw.db*") if path.is_file())


@pytest.mark.parametrize("around", AROUND)
def test_no_secret_of_a_conversation_reaches_the_database(tmp_path, around):
    environment = {"KLAW_CONFIG": os.devnull}
    config = load_config(data_dir=tmp_path / "data", environment=environment, overrides={"memory": WORDS_ONLY})
    with Memory.open(config) as memory:
        for number, secret in enumerate(SECRETS.values()):
            text = around.format(secret, secret)
            meta = {**CHAT.meta, "name": text, "tool": text, "deep": {"list": [text, {"inner": text}]}}
            memory.conversations.append(Message("user", f"{number} {text}", MOMENT, meta=meta))
            memory.conversations.append(Message("tool", json.dumps({"result": text}), MOMENT, meta=meta))
        memory.conversations.add_summary(CHAT, around.format(SECRETS["openai"], SECRETS["openai"]), created_at=MOMENT)
        memory.index()
        found = everything(tmp_path)
    leaked = TAIL.encode() in found or TAIL.lower().encode() in found
    assert not leaked, "in klaw.db"
    assert TAIL.encode() not in everything(tmp_path)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("around", AROUND)
def test_a_secret_is_struck_out_wherever_it_stands(name, around):
    assert TAIL not in Redactor().text(around.format(SECRETS[name], SECRETS[name])), around


@pytest.mark.one_of(3)
@pytest.mark.parametrize("pattern", CATASTROPHIC)
@pytest.mark.parametrize("text", ["a" * 5_000 + "!", "x" * 5_000, "ab " * 5_000, "a" * 200_000])
def test_a_pattern_that_never_ends_hides_the_text_and_goes_on(pattern, text):
    found = Redactor((pattern,)).text(text)
    assert found == UNREADABLE or set(found) <= set(text) | set(REDACTED)
    assert len(found) <= max(len(UNREADABLE), len(text) * len(REDACTED))


#: Pieces of text with which a match of a pattern begins, over and over, and does not end.
BEGINNINGS = (
    *(
        "sk-",
        "a.",
        "a",
        "-----BEGIN ",
        "eyJa.",
        "://a:",
        "1234567890:",
        "bearer ",
        "4" * 20,
        "SG.",
        "%41",
        "4111 ",
        "-u a:",
    ),
    *("password", "password: ", "pass for a ", "token ", "secret=a1", "seed phrase: a ", "пароль ", "密码"),
    *(
        "password for ",
        "token of a b ",
        "I set the password ",
        "set a ",
        "a1 is the ",
        "пароль от б ",
        "mysql -u a ",
        "pw",
    ),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\n" + "Ab0d" * 16 + "\n",
        "redis-cli a ",
        "?sig=",
        "cookie: a=",
        "cookie: a=abcdef;",
        "recovery codes ",
        "recovery codes: a1b2c3d4 ",
        "backup codes\n- aaaa-aaaa\n",
        "recovery codes\n\n|---|\n",
        "password auf ",
        "password: {value: ",
        "password:\n  value: ",
        "pw for a ",
        "__pw__ ",
        "gate code ",
        "4111  1111  ",
        "4111\n1111 ",
        "Authorization: Bearer ",
        "код от двери ",
    ),
)


#: As many characters may an attempt to match look at before it fails.
FAILS_WITHIN = 3_000


def looks_on(pattern: str, beginning: str) -> list[int]:
    """Return the places in a repeated text where no match begins, but an attempt looks at many characters.

    An attempt at a set of strings after a look-behind counts as unfinished in ``regex`` whatever follows, so the
    look-behind is consumed here.
    """
    compiled = regex.compile(pattern.replace("(?<=api", "(?:api"))
    middle = 2 * FAILS_WITHIN // len(beginning) * len(beginning)
    text = beginning * (5 * FAILS_WITHIN // len(beginning))
    fails = [at for at in range(middle, middle + len(beginning)) if not compiled.match(text, at)]
    return [at for at in fails if compiled.match(text, at, at + FAILS_WITHIN, partial=True)]


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_an_attempt_to_match_a_pattern_that_ships_fails_soon(beginning):
    """So the steps for a text grow no faster than the text, however often a match seems to begin."""
    assert {pattern: places for pattern in BUILTIN_PATTERNS if (places := looks_on(pattern, beginning))} == {}


@pytest.mark.parametrize(("pattern", "beginning"), [("a+b", "a"), (r"password(?:: password)*x", "password: ")])
def test_an_attempt_that_looks_at_the_whole_rest_of_a_text_is_found(pattern, beginning):
    assert looks_on(pattern, beginning)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_the_patterns_that_ship_end_on_long_texts(beginning):
    """The limit of ``regex`` only ends a pattern that hangs."""
    text = f"eyJ://{beginning * (100_000 // len(beginning))}"
    for pattern in BUILTIN_PATTERNS:
        found = regex.sub(pattern, REDACTED, text, timeout=300)
        assert found == text or REDACTED in found, pattern
