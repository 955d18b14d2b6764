"""The pages about plugins show what ``klaw plugins new`` writes, and every ability of their kind."""

import importlib
import inspect
import re
from pathlib import Path

import attrs
import pytest

import klaw_core
from klaw_testing.skeleton import skeleton

DOCS = Path(__file__).parents[3] / "docs"
HOW_TO = DOCS / "how-to"
NEW = sorted(HOW_TO.glob("write-a-*.md"))
#: The page of each kind, by the module of its abilities.
PAGES = {
    "components": [DOCS / "tutorial" / "write-an-embedder.md", HOW_TO / "write-a-chunker.md"],
    "source": [HOW_TO / "write-a-source.md"],
    "index": [HOW_TO / "write-a-retriever.md"],
    "store": [HOW_TO / "write-a-store.md"],
    "extension": [HOW_TO / "write-an-extension.md"],
}
ROOTS = {"Embedder", "Chunker", "Fusion", "Reranker", "Source", "Retriever", "Store", "Snapshot", "Transaction"}
NO_ABILITIES = {*ROOTS, "Extension", "Host"}


def abilities():
    """Yield the module, the class and the public members of each ability."""
    for name in PAGES:
        module = importlib.import_module(f"klaw_core.interfaces.{name}")
        source = inspect.getsource(module)
        for found in vars(module).values():
            if inspect.isclass(found) and found.__module__ == module.__name__ and found.__name__ not in NO_ABILITIES:
                body = source.partition(f"class {found.__name__}")[2].partition("\nclass ")[0]
                members = re.findall(r"^ +def ([a-z]\w*)\(", body, re.MULTILINE)
                yield pytest.param(name, found.__name__, members, id=found.__name__)


@pytest.mark.parametrize(("module", "ability", "members"), [*abilities()])
def test_an_ability_is_on_one_page_with_its_members(module, ability, members):
    rows = [
        line
        for page in PAGES[module]
        for line in page.read_text("utf-8").splitlines()
        if line.startswith(f"| `{ability}` |")
    ]
    assert len(rows) == 1, f"{ability} is in {len(rows)} tables"
    assert members
    assert [name for name in members if not re.search(rf"`{name}\b", rows[0])] == []


@pytest.mark.parametrize("page", NEW, ids=lambda page: page.stem)
def test_a_page_shows_what_the_command_writes(page):
    text = page.read_text("utf-8")
    ((name, kind),) = re.findall(r"^\$ klaw plugins new (\S+) --kind (\S+)$", text, re.MULTILINE)
    assert page.stem == f"write-a-{kind}"
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    written = [content for file, content in skeleton(name, kind).items() if file.endswith(".py")]
    assert [block for block in blocks if block in written] == written
    assert text.count("\n") <= 155


def test_the_values_of_plugins_are_listed_with_their_fields():
    text = (DOCS / "reference" / "hooks.md").read_text("utf-8").partition("\n## Values\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([A-Z]\w+)` \| (.*) \|$", text, re.MULTILINE))
    assert len(rows) > 10
    missing = {
        name: [
            field.name for field in attrs.fields(getattr(klaw_core, name)) if not re.search(rf"`{field.name}\b", row)
        ]
        for name, row in rows.items()
    }
    assert {name: fields for name, fields in missing.items() if fields} == {}
