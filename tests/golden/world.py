"""A small memory with something of everything, the same on every machine and at every time."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.metadata import version
from itertools import count
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from attrs import define, field

from klaw_core import Chat, LiveComponent, Memory, Message, NewDocument, VectorSpace, load_config
from klaw_core.cli import settings
from klaw_core.plugins.discover import discover
from klaw_core.plugins.registry import Registry
from klaw_core.values.config import Config

MOMENT = datetime(2020, 2, 24, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
CHAT = Chat("telegram", "1")
CONFIG = '[memory.embedding]\ntype = "hashes"\n'
# The reranking stages without a model. The age of a result makes no difference in such a long half-life.
STAGES = """
[memory.embedding]
type = "hashes"

[[memory.reranking]]
type = "importance"
factors = { "conversations/" = 0.5 }

[[memory.reranking]]
type = "recency"
half_life_days = 1000000000

[[memory.reranking]]
type = "mmr"
"""
NOTES = {
    "harbour.md": "---\nkind: plan\ntags: [sea, work]\n---\n# Harbour\n\nThe harbour is deep.\n\n## Pilot\n\n"
    "The pilot comes at dawn, when the tide turns.\n",
    "kiln.md": "# Kiln\n\nThe kiln is fired to twelve hundred degrees.\n\n## Glaze\n\nAsh glaze runs at the harbour.\n",
    "2020-02-20.md": "# Thursday\n\nBaked rye bread with buttermilk.\n",
    "sub/дача.md": "# Дача\n\nКлюч лежит под ковриком.\n",
    "empty.md": "",
    "picture.png": "no text",
}
#: The first number that is drawn instead of a random one after the world was made; it has drawn fewer.
_NUMBERS = 1_000
#: A question with its answer, for `klaw eval`.
QUESTIONS = '{"question": "how hot is the kiln", "path": "notes/kiln.md"}\n'


@define
class HashEmbedder:
    """Counts words in 32 dimensions, chosen by their hashes."""

    max_tokens = 1_000_000

    @property
    def space(self):
        return VectorSpace("hashes", "1", 32)

    def embed_documents(self, texts, /):
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text, /):
        vector = np.zeros(32, np.float32)
        for word in re.findall(r"\w+", text.lower()) or [""]:
            vector[crc32(word.encode()) % 32] += 1
        return vector / np.linalg.norm(vector)

    def count_tokens(self, texts, /):
        return [len(text.split()) for text in texts]


LIVE = [LiveComponent("embedder", "hashes", HashEmbedder())]


@cache
def registry(disabled: frozenset[str] = frozenset()) -> Registry:
    return discover(disabled=disabled).with_live(LIVE)


@define
class World:
    """A home with notes, a configuration and a data directory; ``renew`` brings it back to its first state."""

    home: Path
    numbers: Iterator[int] = field(factory=lambda: count(1))

    @property
    def environment(self) -> dict[str, str]:
        places = {f"XDG_{name}_HOME": str(self.home / name.lower()) for name in ("CONFIG", "DATA", "CACHE")}
        return {**places, "HOME": str(self.home), "COLUMNS": "100", "TZ": "UTC", "NO_COLOR": "1"}

    @property
    def config(self) -> Config:
        return load_config()

    def open(self) -> Memory:
        return Memory.open(self.config, registry=registry())

    def renew(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.home.with_name("template"), self.home)
        os.chdir(self.home)
        self.numbers = count(_NUMBERS)  # so that no file depends on which others were computed before
        os.environ.update(self.environment)  # each test has another environment before it begins


@contextmanager
def made(root: Path) -> Iterator[World]:
    """Make a world, and an environment in which every program finds it and nothing else."""
    world = World(root / "home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("KLAW_", "_KLAW"))]:
            patch.delenv(name)
        for name, value in world.environment.items():
            patch.setenv(name, value)
        time.tzset()
        world.home.mkdir()
        patch.chdir(world.home)
        patch.setattr(secrets, "token_hex", lambda size=32: f"{next(world.numbers):0{2 * size}x}")
        patch.setattr(secrets, "token_urlsafe", lambda size=32: f"token-{next(world.numbers):0{size}}")
        # The notes count as written long ago: those written in this moment would be read by every run.
        patch.setattr("klaw_notes.walking._TICK", -(10**11))
        patch.setattr(settings, "_registry", lambda config: registry(frozenset(config.disabled_plugins)))
        _fill(world)
        shutil.copytree(world.home, root / "template")
        yield world
    time.tzset()


def _fill(world: World) -> None:
    file = world.home / "config" / "klaw" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(CONFIG, "utf-8")
    for number, (name, text) in enumerate(NOTES.items()):
        path = world.home / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        os.utime(path, ((MOMENT + DAY * number).timestamp(),) * 2)
    (world.home / "stages.toml").write_text(STAGES, "utf-8")
    (world.home / "questions.jsonl").write_text(QUESTIONS, "utf-8")
    with world.open() as memory:
        memory.index(world.home / "notes")
        memory.save("The lantern of the harbour is green.", created_at=MOMENT, source="talk")
        memory.add([NewDocument("pilot book", "Pilots know the harbour chart.", created_at=MOMENT)])
        memory.add([NewDocument("chart", "Charts of the river mouth.", created_at=MOMENT)], collection="charts")
        for number, said in enumerate(("Where is the lantern?", "It hangs at the harbour.", "Please light it.")):
            role = "assistant" if number % 2 else "user"
            moment = MOMENT + DAY + timedelta(minutes=number)
            memory.conversations.append(Message(role, said, moment, f"m{number}", meta=CHAT.meta))
        memory.core.update("user", "name", "Ada")
        memory.core.update("agent", "tone", "brief")
        facts = memory.extension("facts")
        facts.remember("Ada lives in Hamburg", slot="city", value="Hamburg", valid_from=MOMENT)
        facts.remember("Ada lives in Bremen", slot="city", value="Bremen", valid_from=MOMENT + DAY * 20)
        facts.remember("Ada likes rye bread", valid_from=MOMENT)
        memory.index()


_MOMENT = r"(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?"
_MASKS = (
    (r'("(?:seconds|took|age|modified|elapsed\w*|\w+_seconds)": )[\d.e-]+', r"\1<n>"),
    (r"\b\d+(?:\.\d+)? (?:ms|s|seconds?)\b", "<n> s"),
    (r"\b\d+(?:\.\d+)? (?:bytes|B|[kKMG]i?B)\b", "<size>"),
    (r'("(?:\w*bytes|size)": )\d+', r"\1<n>"),
    (r'("component": "recency",\s+"rank": \d+,\s+"raw": )[\d.]+', r"\1<age>"),
    (r'"state": "\w+",\s+"progress": (?:null|\{[^}]*\})', '"state": <state of a run>'),
    (r'("content_hash": )"\w+"', r'\1"<hash>"'),  # also of the patterns of secrets
    (r'("sqlite_version": )".*?"', r'\1"<version>"'),
    (r"\bb-[a-z2-7]{16}\b", "b-<id>"),
    (r"saved/<now>/\w+", "saved/<now>/<id>"),
    (
        r"(?:<python> -m ensurepip && )?(?:uv |<python> -m )?pip install (?:-p \S+ )?-e",
        "<install> -e",
    ),  # what made the environment
)


def masked(text: str, world: World) -> str:
    """Return a text without what differs between two runs: places, moments of now,
    durations, sizes of files, versions and last digits."""
    python = Path(sys.executable)
    places = {str(world.home): "~", str(python): "<python>", sysconfig.get_path("purelib"): "<packages>"}
    for place, name in places.items():
        text = text.replace(place, name)
    text = re.sub(rf"\b{re.escape(version('klaw'))}\b", "<version>", text)
    today = datetime.now(UTC).date()
    for day in (today, today - DAY):
        text = re.sub(rf"{day}{_MOMENT}", "<now>", text)
    # The last digits of a sum differ between processors.
    text = re.sub(r"-?\d+\.\d{6,}(?:e-?\d+)?", lambda found: f"{round(float(found[0]), 5) + 0.0:.5f}", text)
    for pattern, shown in _MASKS:
        text = re.sub(pattern, shown, text)
    return text
