"""The first part of a life, which an earlier version of Klaw lives: its user updates Klaw afterwards.

    python earlier_part.py ROOT SEED [DSN SCHEMA]

With a DSN, its store is PostgreSQL: tables in that schema.
Only that version's sources are on the path, its ``tests/crash/scenes.py`` too. It prints what was acknowledged, as the
values of a ``Model``, and what it could not do. It is a program of its own: nothing else here fits to all versions.
"""

import json
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import scenes
from click.testing import CliRunner
from dates import go_on_from
from stores import in_postgres

from klaw_core.cli.program import cli
from klaw_core.plugins import discover

#: The moment and the number of its first operation: each is later than the one before, and earlier than today's part.
_START, _FIRST, _OPERATIONS = 1_772_000_000 - 20 * 86_400, 2000, 30
_KINDS = {
    "save": 6,
    "typed": 3,
    "say": 6,
    "move": 3,
    "note": 4,
    "index": 3,
    "fact": 4,
    "core": 2,
    "forget": 3,
    "unsay": 2,
    "unfact": 1,
    "extract": 1,
    "reindex": 1,
    "restart": 2,
}
_CONFIG = """[memory.store]
type = "sqlite"

[memory.embedding]
type = "hashing"
dimension = 16

[memory.chunking]
type = "markdown"
max_tokens = 60
overlap_tokens = 0

[[memory.retrieval]]
type = "sqlite-vec"
weight = 0.5

[[memory.retrieval]]
type = "fts5"

[extensions.facts]
extractor = "rules"
"""
#: The same, in PostgreSQL.
_OTHERS = {'"sqlite-vec"': '"pgvector"', '"fts5"': '"pgwords"'}


class OnPostgres(scenes.Home):
    """A home whose tables are in a schema of a database."""

    place: tuple[str, str]

    def config(self, directory: Path, dimension: int = 16) -> Any:
        return in_postgres(super().config(directory, dimension), *self.place)


class Life:
    """What an earlier version does, and what it has acknowledged."""

    def __init__(self, root: Path, seed: str, place: tuple[str, str] | None) -> None:
        self._config = _CONFIG
        kind = scenes.Home
        if place is not None:
            kind, OnPostgres.place = OnPostgres, place
            self._config = _CONFIG.replace('"sqlite"', '"postgres"\ndsn = "{}"\nschema = "{}"'.format(*place))
            for one, other in _OTHERS.items():
                self._config = self._config.replace(one, other)
        self.home = kind(root, scenes.make_registry(), facts=True)
        self._dice = Random(f"{seed} earlier")
        os.urandom = self._dice.randbytes
        for name, module in list(sys.modules.items()):
            if name.startswith("klaw") and getattr(module, "discover", None) is discover.discover:
                module.discover = lambda **_: self.home.registry
        self.model: dict[str, Any] = {name: {} for name in ("saved", "said", "facts", "core", "notes", "gone")}
        self.model["seen"] = []
        self.memory = self.home.open()

    def live(self, number: int, kind: str, word: str) -> None:
        """Do something, and note what was acknowledged."""
        act: Callable[[int, str], None] = getattr(self, f"_{kind}")
        act(number, word)

    def _save(self, _: int, word: str) -> None:
        passage = self.memory.save(f"{word} was saved")
        if not passage.notice:
            self.model["saved"][passage.path] = word

    def _typed(self, _: int, word: str) -> None:
        """Save by the command line; its options are those of each version."""
        file = self.home.root / "earlier.toml"
        file.write_text(self._config)
        environment = {"KLAW_CONFIG": str(file), "KLAW_EMBEDDER": "", "NO_COLOR": "1"}
        words = ["save", f"{word} was typed", "--json", "--data-dir", str(self.home.data)]
        done = CliRunner().invoke(cli, words, env=environment, prog_name="klaw")
        assert done.exit_code == 0, (done.output, done.exception)
        saved, _ = json.JSONDecoder().raw_decode(done.output)
        self.model["saved"][saved["path"]] = word

    def _message(self, number: int, text: str, meta: Any) -> str:
        at = datetime.fromtimestamp(_START, UTC) + timedelta(minutes=number - _FIRST)
        return str(self.memory.conversations.append(scenes.Message("user", text, at, meta=meta)).id)

    def _say(self, number: int, word: str) -> None:
        name = self._message(number, f"{word} was said", scenes.CHAT.meta)
        self.model["said"][f"{scenes.CHAT.name}/{name}"] = word

    def _move(self, number: int, word: str) -> None:
        """Move, in a chat that nobody looks at later: which facts a message has is for each version to say."""
        self._message(number, f"I moved to {word.capitalize()}, Texas.", scenes.Chat("telegram", "555").meta)

    def _note(self, number: int, word: str) -> None:
        self.home.write(f"earlier{number % 5}.md", f"# Note\n\n{word} stands here.\n\n## More\n\n{word} again\n")
        self.memory.index(self.home.notes)
        self.model["notes"][f"notes/earlier{number % 5}.md"] = word

    def _index(self, _number: int, _word: str) -> None:
        if self.home.notes.exists():
            self.memory.index(self.home.notes)
            self.memory.index()
            self.model["seen"] = sorted(self.model["said"].values())

    def _fact(self, _: int, word: str) -> None:
        self.model["facts"][f"facts/{self.memory.extension('facts').remember(f'{word} is a fact').id}"] = word

    def _core(self, number: int, word: str) -> None:
        self.memory.core.update("user", f"key {number % 3}", word)
        self.model["core"][f"key {number % 3}"] = word

    def _gone(self, kind: str) -> None:
        names = sorted(self.model[kind])
        if names:
            name = self._dice.choice(names)
            self.memory.forget(name)
            self.model["gone"][name] = self.model[kind].pop(name)

    def _forget(self, _number: int, _word: str) -> None:
        self._gone("saved")

    def _unsay(self, _number: int, _word: str) -> None:
        self._gone("said")

    def _unfact(self, _number: int, _word: str) -> None:
        self._gone("facts")

    def _extract(self, _number: int, _word: str) -> None:
        self.memory.extension("facts").extract()

    def _reindex(self, _number: int, _word: str) -> None:
        self.memory.reindex()

    def _restart(self, _number: int, _word: str) -> None:
        self.memory.close()
        self.memory = self.home.open()


def main() -> None:
    """Live it; print what it was."""
    root, seed, *place = sys.argv[1:]
    life = Life(Path(root), seed, (place[0], place[1]) if place else None)
    life.memory.extension("facts").state()
    go_on_from(_START)  # shown to what is imported by now
    dice = Random(f"{seed} kinds")
    kinds = dice.choices([*_KINDS], [*_KINDS.values()], k=_OPERATIONS)
    for number, kind in enumerate(kinds, _FIRST):
        life.live(number, kind, f"w{seed}x{number}q")
    life.memory.close()
    print(json.dumps(life.model))


if __name__ == "__main__":
    main()
