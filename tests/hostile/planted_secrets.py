"""Secrets of 35 kinds with a mark in each, and a world whose bytes, prompts and logs can all be searched."""

from __future__ import annotations

import json
import logging
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from attrs import define, field

from klaw_core import LiveComponent, Memory, VectorSpace, estimate_tokens, load_config
from klaw_testing.language_model import ScriptedModel

NOW = datetime(2026, 2, 24, 12, tzinfo=UTC)
#: Begins each secret; after it comes the number of the planting, by which a leak is named.
MARK = "Zq7Yw3Xv9"
_FOUND = re.compile(rb"zq7yw3xv9(\d{4})?", re.IGNORECASE)
_FILLER = "Ut5Sr1Pn8Mk4Lj6Hg2Fd0CaBe" * 4

#: Sentences; ``{N}`` stands for N characters of a secret.
KINDS = {
    "aws": "My AWS key is AKIA{16}",
    "aws-secret": "aws_secret_access_key = {40}",
    "github": "My GitHub token is ghp_{36}",
    "github-fine-grained": "I use github_pat_{60} for CI",
    "gitlab": "The deploy token is glpat-{20}",
    "openai": "My OpenAI key is sk-proj-{40}",
    "anthropic": "I use the key sk-ant-api03-{40}",
    "slack": "The bot of the team uses xoxb-{24}",
    "slack-webhook": "We post to https://hooks.slack.com/services/T00000000/B00000000/{24}",
    "stripe": "We charge cards with sk_live_{24}",
    "google": "Our maps key is AIza{35}",
    "hugging-face": "I log in with hf_{34}",
    "npm": "I publish with npm_{36}",
    "pypi": "I upload with pypi-{60}",
    "telegram": "My bot is 1234567890:{35}",
    "jwt": "The session is eyJhbGciOiJIUzI1NiJ9.eyJ{40}.{40}",
    "bearer": "Authorization: Bearer {32}",
    "basic": "Authorization: Basic {24}",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\n{64}\n{64}\n-----END RSA PRIVATE KEY-----",
    "ssh-key": "-----BEGIN OPENSSH PRIVATE KEY-----\n{64}\n-----END OPENSSH PRIVATE KEY-----",
    "url": "Our database is postgres://anna:{20}@db.example.com/shop",
    "azure": "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={86}==;EndpointSuffix=core.windows.net",
    "connection": "Server=db;User Id=sa;Password={20};Encrypt=true",
    "password": "my password: {16}",
    "german": "Mein Passwort ist {16}",
    "spanish": "Mi contraseña es {16}",
    "french": "Mon mot de passe est {16}",
    "russian": "мой пароль: {16}",
    "chinese": "我的密码：{16}",
    "env": "DB_PASSWORD={16}",
    "table": "| service | password |\n|---|---|\n| router | {16} |",
    "invisible": "pass\u200bword: {16}",
    "recovery-codes": "My recovery codes:\n\n1. {12}\n2. {13}",
    "cookie": "I use the header Cookie: sessionid={32}",
    "signed-url": "See https://a.blob.core.windows.net/c?sv=2022&sig={16}",
}
#: Other sentences with a secret of a kind. Each planting of the kind takes the next: each door gets some.
PHRASINGS = {
    "password": (
        "My password for the router is {16}.",
        "{16} is the wifi password",
        "I set the password of the router to {16}",
        "The password has been changed to {16}",
        "password → {16}",
        "ｐａｓｓｗｏｒｄ：{16}",
    ),
    "aws-secret": ("The API key for OpenWeather is {40}", "The token for the staging API is {32}"),
    "german": ("Das Passwort für den Router ist {16}", "Ich habe das Passwort auf {16} geändert"),
    "spanish": ("La contraseña del wifi es {16}", "Cambié la contraseña a {16}"),
    "french": ("Le mot de passe du wifi est {16}", "J'ai changé le mot de passe en {16}"),
    "russian": ("пароль от роутера {16}", "сменил пароль на {16}"),
    "env": ("PW={16}", "mysql -u root -p{16}", "redis-cli -a {16}"),
    "table": (
        "service,password\nrouter,{16}",
        " service | API key \n---------+---------\n maps    | {32}",
        "router\ttoken\nci\t{20}",
    ),
    "invisible": ("the p\u00adassword is {16}", "my \u2060to\ufe0fken: {20}"),
    "recovery-codes": ("Backup codes for mail: {12}, {13}", "2FA codes\n- [ ] {12}\n- [x] {13}"),
    "signed-url": (
        "https://b.s3.amazonaws.com/k?X-Amz-Signature={14}",
        "https://b.example.com/k?Signature={13}&Expires=1",
    ),
    "hugging-face": (
        *("We draw with figd_{40}", "The base is sbp_{40}", "We host with rnd_{28}", "My notes are in ntn_{46}"),
        *("Errors go to sntrys_{60}", "The model runs with nvapi-{64}", "The network is tskey-auth-{40}"),
        *(
            "We sell with sq0atp-{22}",
            "The customers are in pat-na1-{36}",
            "The vault is hvs.{24}",
            "I plan with ATATT3{60}",
        ),
    ),
}
#: Names of keys, subjects and tags beside which a value is a secret.
NAMES = (
    "password",
    "wifi password",
    "api_key",
    "DB_PASSWORD",
    "Passwort",
    "mot de passe",
    "contraseña",
    "пароль",
    "密码",
)
#: Kinds that are recognised by the name in front of them, and so not without it.
NAMED = (
    "aws-secret",
    "bearer",
    "basic",
    "azure",
    "connection",
    "env",
    "password",
    "german",
    "spanish",
    "french",
    "russian",
    "chinese",
    "table",
    "invisible",
    "recovery-codes",
    "signed-url",
    "cookie",
)
OTHER = "I live in Lyon and like tea."


@define
class Planter:
    """Makes sentences with secrets, each with its own number, and finds in bytes where a secret came from."""

    places: list[str] = field(factory=list)
    planted: Counter[str] = field(factory=Counter)

    def secret(self, length: int) -> str:
        """Return characters of the last planting."""
        return f"{MARK}{len(self.places) - 1:04d}{_FILLER}"[:length]

    def plant(self, kind: str, where: str) -> str:
        """Return a sentence with a secret of a kind, for a place."""
        self.places.append(f"{where} ({kind})")
        secret = self.secret(200)
        if kind == "aws":
            secret = secret.upper()
        forms = (KINDS[kind], *PHRASINGS.get(kind, ()))
        sentence = forms[self.planted[kind] % len(forms)]
        self.planted[kind] += 1
        return re.sub(r"\{(\d+)\}", lambda match: secret[: int(match[1])], sentence)

    def found(self, data: bytes | str) -> set[str]:
        """Return the places whose secrets are in the data."""
        data = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        return {self.places[int(match[1])] if match[1] else "?" for match in _FOUND.finditer(data)}


@define
class RecordingEmbedder:
    """Writes down every text."""

    texts: list[str] = field(factory=list)
    space = VectorSpace("recording", "1", 8)
    max_tokens = 10_000

    def embed_documents(self, texts: Any, /) -> Any:
        self.texts += texts
        return np.tile(np.eye(8, dtype=np.float32)[0], (len(texts), 1))

    def embed_query(self, text: str, /) -> Any:
        self.texts.append(text)
        return np.eye(8, dtype=np.float32)[0]

    def count_tokens(self, texts: Any, /) -> Any:
        return estimate_tokens(texts)


#: Files that are the record of what was said or written, below the data directory. They keep it unchanged.
RECORDS = re.compile(
    r"conversations/.*\.jsonl|summaries/.*\.jsonl|saved\.jsonl|documents\.jsonl|core_memory\.json|workspaces\.json|agents/[^/]+/(?:saved\.jsonl)"
)


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(logging.Formatter().format(record))


def _answer(prompt: Any) -> str:
    """Answer with what the model was told, so that a secret in a prompt would also be in its answer."""
    said = "\n".join(message.content for message in prompt.messages if message.role == "user")
    if prompt.schema is None:
        return said[:2000] or "nothing"
    return json.dumps({name: [] for name in prompt.schema["properties"]})


@define(eq=False)
class World:
    """A memory in a directory, and everything that leaves it: ``said`` are errors, answers of tools and contexts."""

    home: Path
    memory: Memory
    model: ScriptedModel
    embedder: RecordingEmbedder
    planter: Planter = field(factory=Planter)
    said: list[str] = field(factory=list)
    log: _Log = field(factory=_Log)

    @classmethod
    def open(cls, home: Path, *, redacts: bool = True, **facts: Any) -> Self:
        """Open a memory in which also notes are redacted, so that nothing is exempt but the records."""
        (home / "notes").mkdir(parents=True, exist_ok=True)
        (home / "notes" / "tea.md").write_text("# Tea\n\nTea is kept in the blue tin.\n")
        config = load_config(
            data_dir=home / "data",
            environment={"KLAW_CONFIG": "/dev/null", "XDG_CACHE_HOME": str(home / "cache")},
            overrides={
                "memory": {
                    "embedding": {"type": "recording"},
                    "language_model": {"type": "scripted"},
                    "conversations": {"redact_secrets": redacts, "redact_notes": True},
                },
                "extensions": {"facts": facts},
            },
        )
        model, embedder = ScriptedModel([_answer] * 10_000), RecordingEmbedder()
        live = [
            LiveComponent("embedder", "recording", embedder),
            LiveComponent("language model", "scripted", model),
        ]
        made = cls(home, Memory.open(config, components=live), model, embedder)
        logging.getLogger("klaw").addHandler(made.log)
        logging.getLogger("klaw").setLevel(logging.DEBUG)
        made.memory.index(home / "notes")
        return made

    def close(self) -> None:
        logging.getLogger("klaw").removeHandler(self.log)
        self.memory.close()

    def settle(self) -> None:
        """Do what later calls do with what was stored: index, extract, compress, recall, export."""
        memory = self.memory
        assert memory.conversations.behind.flush(300), "messages are still to be written"
        memory.index()
        facts: Any = memory.extension("facts")
        facts.compress()
        for question in ("What is my key, my token, my password?", "Where do I live? What is my bot?"):
            self.said.append(str(memory.context(question, budget=20_000)))
            self.said += [repr(item) for item in facts.search(question, 50)]
            for name, tool in memory.toolbox().items():
                if tool.read_only:
                    given = {key: question for key in tool.properties if key in {"query", "message"}}
                    self.said.append(json.dumps(memory.call_tool(name, given), ensure_ascii=False))
        self.said.append(memory.core.render())
        self.said += [repr(fact) for fact in facts.list(everything=True)]
        self.said += [repr(record) for record in facts.records()]
        self.said += [repr(finding) for finding in memory.doctor().findings]
        for item in memory.documents(limit=200):
            self.said.append(json.dumps(memory.call_tool("memory_get", {"path": item.path}), ensure_ascii=False))

    def leaks(self, *, by_kind: bool = False) -> set[str]:
        """Return where planted secrets are found and from where they came, with one kind of each, or every kind."""
        found: dict[str, list[str]] = {}
        for where, text in self._texts():
            for place in self.planter.found(text):
                door, _, kind = place.partition(" ")
                found.setdefault(f"{door} in {where}", []).append(kind)
        self.said.clear()
        if by_kind:
            return {f"{place} {kind}" for place, kinds in found.items() for kind in kinds}
        return {f"{place}: {len(set(kinds))} kinds, such as {kinds[0]}" for place, kinds in found.items()}

    def _texts(self) -> Iterator[tuple[str, bytes | str]]:
        for name in ("data", "cache"):
            for path in sorted((self.home / name).rglob("*")):
                inside = path.relative_to(self.home / name).as_posix()
                yield "the name of a file", inside
                if path.is_file() and not (name == "data" and RECORDS.fullmatch(inside)):
                    data = path.read_bytes()
                    yield path.name, data
                    with suppress(zlib.error):
                        yield path.name, zlib.decompress(data)
        yield from (("a text to embed", text) for text in self.embedder.texts)
        yield from (("a prompt", message.content) for prompt in self.model.prompts for message in prompt.messages)
        yield from (("a line of the log", line) for line in self.log.lines)
        yield from (("something said", text) for text in self.said)


def alone(text: str) -> list[str]:
    """Return the secret of a sentence without the sentence, if it is recognised without it."""
    forms = (form for kind in NAMED for form in (KINDS[kind], *PHRASINGS.get(kind, ())))
    around = (re.split(r"\{\d+\}", form) for form in forms)
    named = any(text.startswith(parts[0]) and text.endswith(parts[-1]) for parts in around)
    return [] if named or "\n" in text else [text.rsplit(maxsplit=1)[-1]]


def apart(text: str) -> tuple[str, str]:
    """Return the name of a password or a key, and the secret of a sentence as its value."""
    found = re.search(rf"{MARK}(\d{{4}})\w*", text, re.IGNORECASE)
    assert found is not None
    return NAMES[int(found[1]) % len(NAMES)], found[0]


def beside(text: str) -> dict[str, Any]:
    """Return an object with the secret of a sentence as the value of a key, and in a list."""
    name, value = apart(text)
    return {name: value, "words": (value, name)}


def sentences(planter: Planter, where: str, kinds: Iterable[str] = KINDS) -> list[str]:
    """Return one sentence with a secret of each kind."""
    return [planter.plant(kind, where) for kind in kinds]
