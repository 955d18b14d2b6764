"""Bundles in Open Knowledge Format: what is written has its form, and is read again as it was."""

import json
import re
import tempfile
from pathlib import Path
from unicodedata import normalize

import pytest
import yaml
from click.testing import CliRunner
from hypothesis import example, given
from hypothesis import strategies as st

from klaw_core import Memory, NewDocument, StoreError, load_config
from klaw_core.cli.program import cli
from klaw_notes.links.reading import anchor
from klaw_notes.links.relinking import relinked

IS_CONCEPT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
IS_ENTRY = re.compile(r"# (?:Documents|Directories)|\* \[.+\]\(.+\)(?: - .+)?|")


def open_memory(home):
    return Memory.open(load_config(data_dir=home / "data", overrides={"memory": {"embedding": {"type": "none"}}}))


def vault_of(home, notes):
    for name, text in notes.items():
        path = home / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", newline="")
    return home / "vault"


def concepts_of(bundle):
    """Return the front matter and the text of each file; refuse what the format does not allow."""
    found = {}
    for path in sorted(bundle.rglob("*")):
        if path.is_dir():
            continue
        name, text = path.relative_to(bundle).as_posix(), path.read_bytes().decode()
        assert name.endswith(".md")
        if path.name == "index.md":
            if name == "index.md":
                head, text = IS_CONCEPT.fullmatch(text).groups()
                assert yaml.safe_load(head) == {"okf_version": "0.2"}
            assert [line for line in text.split("\n") if not IS_ENTRY.fullmatch(line)] == []
            continue
        assert path.name.casefold() not in {"index.md", "log.md"}
        head, body = IS_CONCEPT.match(text).groups()
        values = yaml.safe_load(head)
        assert "type" in values
        found[name] = values, body
    return found


def all_paths(memory):
    return [record.path for record in memory.documents(limit=1_000)]


def tags_of(memory, path):
    with memory.extension("links")._host.read() as snapshot:
        (first, *_) = snapshot.outline("memory", path)
    return first.metadata.get("tags", ())


# Names that some systems cannot have, and their names in a bundle.
BESIDES = {
    "aux.md": "_aux.md",
    "CON/nul.x.md": "_CON/_nul.x.md",
    "Com¹ .md": "_Com¹ .md",
    "console.md": "console.md",
    "end. ./d.md": "end/d.md",
    ". ./e.md": "_/e.md",
}
NAMES = ("a.md", "b b.md", "sub/a.md", "sub/index.md", "Ö(1).md", "sub/deep/c#1.markdown", *BESIDES)
LINKS = (
    *("[[a]]", "[[b b#Plan B|the *plan*]]", "![[c#1]]", "[[sub/a]]", "[[Gone]]", "[x](a.md)", "[y](<b b.md#plan-b>)"),
    *("[z](../a.md)", "[w](sub/a.md)", "[v](gone.md)", "[[Alias]]", "[[Ö(1)|see `[[a]]`]]", "![p](photo.png)"),
    *("[[aux]]", "[[Com¹ ]]", "[u](<CON/nul.x.md>)", "[[end. ./d|D]]"),
)
AROUND = (
    "`",
    "``",
    "\n",
    "\n\n",
    "> ",
    "- ",
    "    ",
    "# Plan B\n",
    "| a | b |\n|---|---|\n| ",
    " | ",
    "```\n",
    "word ",
    "\\",
)
HEADS = (
    "",
    "---\ntags: [x, y]\nup: '[[a]]'\n---\n",
    "---\ntype: Term\naliases: [Alias]\n---\n",
    "---\ntype: ''\nup: [sub/a.md, '[b](<b b.md>)']\n---\n",
    "+++\ntags = ['t']\nup = '[[b b]]'\n+++\n",
    '---\ntitle: Rust: a history\nrelated: "[[a]]"\n---\n',
    "---\n\nno front matter\n",
)
texts = st.tuples(st.sampled_from(HEADS), st.lists(st.sampled_from([*LINKS, *AROUND]), max_size=12)).map(
    lambda parts: parts[0] + "".join(parts[1]) + "\n\nEnd.\n"
)


@given(st.dictionaries(st.sampled_from(NAMES), texts, min_size=1))
@example({"a.md": "---\ntags: [x]\n---\n`[[a]]` [[sub/a]]\n", "sub/a.md": "> q [[a]]\n"})
@example({"a.md": "| a | b |\n|---|---|\n| `[[b b]]` | [[b b|c]] | \n", "b b.md": "> > [x](a.md)\n"})
def test_a_bundle_has_the_form_and_is_read_again_with_the_same_tags_and_links(notes):
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        with open_memory(home) as memory:
            memory.index(vault_of(home, notes))
            links = memory.extension("links")
            report = links.bundle(memory, home / "bundle")
            before = {path: (tags_of(memory, path), links.of(path)) for path in all_paths(memory)}
            files = concepts_of(home / "bundle")
            assert report.counts.get("note", 0) == len(files) == len(before)
            memory.index(home / "bundle")
            names = dict(zip(before, (f"bundle/{name}" for name in in_order(before, files)), strict=True))
            for path, (tags, found) in before.items():
                again = links.of(names[path])
                assert tags_of(memory, names[path]) == tags
                assert led_to(again.to, lambda target: target) == led_to(found.to, names.get)
                assert len(named(again.broken)) == len(named(found.broken))


def led_to(edges, place_of):
    """Return where links lead, in order: two of a line that differ in a bundle no more are one."""
    return list(dict.fromkeys((place_of(edge.target), anchor(edge.heading), edge.kind) for edge in edges))


def named(broken):
    return {each.target for each in broken if each.reason == "no such document"}


def in_order(paths, files):
    """Return the name of each note in a bundle: the one with its last line."""
    portable = (f"vault/{BESIDES.get(name, name)}" for name in (path.removeprefix("vault/") for path in paths))
    wanted = [re.sub(r"[#]", "-", path).replace("sub/index.md", "sub/index-note.md") for path in portable]
    wanted = [name.removesuffix(".markdown").removesuffix(".md") + ".md" for name in wanted]
    assert set(wanted) == set(files)
    return wanted


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("[[A]] `[[A]]` ![[A#h|b]]\n", "[A](/x) `[[A]]` [b](/x)\n"),
        ("> - [[A]]\n>   [[A|b]]\n", "> - [A](/x)\n>   [b](/x)\n"),
        ("|a|b|\n|-|-|\n|`[[A]]`|[[A\\|b]]|\n", "|a|b|\n|-|-|\n|`[[A]]`|[b](/x)|\n"),
        ("[a `b`](<c d.md> 't') ![p](e.md)\r\n[[A]]", "[a `b`](/x 't') ![p](/x)\r\n[A](/x)"),
        ("[a [[A]]](b.md)\n", "[a [[A]]](b.md)\n"),
        ("---\nup: '[[A]]'\n---\n[[A]]\n", "---\nup: '[[A]]'\n---\n[A](/x)\n"),
        ("[a][1] \\[[A]] %% [[A]] %%\n\n> [1]: <b c.md> 't'\n", "[a][1] \\[[A]] %% [[A]] %%\n\n> [1]: /x 't'\n"),
        ("    [[A]]\n\n<!-- [[A]]\n[[A]] -->\n", "    [[A]]\n\n<!-- [[A]]\n[[A]] -->\n"),
    ],
)
def test_links_are_written_anew_and_nothing_else(text, written):
    assert relinked(text, lambda _link: "/x") == written
    assert relinked(text, lambda _link: "") == text


@pytest.fixture
def memory(tmp_path):
    with open_memory(tmp_path) as memory:
        yield memory


def test_names_that_are_reserved_or_equal_are_changed(memory, tmp_path):
    given = [
        "a:b",
        "a*b",
        "A-b",
        "x/../.y",
        "log",
        "LOG.md",
        "n",
        "n.md/n.MD/n",
        *("cr\u00e8me", "cre\u0300me"),  # one name on macOS
        *(f"{'ö' * 300}{end}" for end in "ab"),
    ]
    memory.add([NewDocument(name, name) for name in given])
    memory.extension("links").bundle(memory, tmp_path / "bundle")
    names = sorted(name.removeprefix("documents/") for name in concepts_of(tmp_path / "bundle"))
    assert [name.casefold() for name in names if name.startswith("index")] == []
    assert len({normalize("NFC", name).casefold() for name in names}) == len(given)
    assert sorted(text for _, text in concepts_of(tmp_path / "bundle").values()) == sorted(given)


def test_what_is_saved_has_its_tags_and_what_is_no_text_of_yours_is_left_out(memory, tmp_path):
    vault = vault_of(
        tmp_path, {"a.md": "---\ndescription: The *first*\ntitle: A [1]\n---\n[b](b.txt)\n", "b.txt": "b\n"}
    )
    memory.index(vault)
    memory.save("Ada: keeps\nbees.", tags=["people", "no"])
    report = memory.extension("links").bundle(memory, tmp_path / "bundle")
    assert (dict(report.counts), report.notices) == (
        {"saved": 1, "note": 1},
        ("left out 1 document of another kind than Markdown",),
    )
    ((name, (values, text)), (_, (_, note))) = concepts_of(tmp_path / "bundle").items()
    assert name.startswith("saved/")
    assert (values["type"], values["tags"], text) == ("Memory", ["people", "no"], "Ada: keeps\nbees.")
    assert note == "[b](b.txt)\n"
    assert "* [A \\[1\\]](a.md) - The *first*\n" in (tmp_path / "bundle" / "vault" / "index.md").read_text()


def test_a_directory_with_files_is_not_touched(memory, tmp_path):
    memory.save("Ada keeps bees.")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "mine").write_text("mine")
    with pytest.raises(StoreError, match="not empty"):
        memory.extension("links").bundle(memory, tmp_path / "bundle")
    with pytest.raises(StoreError, match="no such directory"):
        memory.extension("links").bundle(memory, tmp_path / "none" / "bundle")
    assert [path.name for path in (tmp_path / "bundle").iterdir()] == ["mine"]
    (tmp_path / "bundle" / "mine").unlink()
    assert memory.extension("links").bundle(memory, tmp_path / "bundle").counts == {"saved": 1}


def test_a_failed_write_leaves_nothing(memory, tmp_path, monkeypatch):
    memory.save("Ada keeps bees.")
    before = sorted(tmp_path.iterdir())

    def fail(*_given, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fail)
    with pytest.raises(StoreError, match="No space left"):
        memory.extension("links").bundle(memory, tmp_path / "bundle")
    assert sorted(tmp_path.iterdir()) == before


def test_a_document_that_is_forgotten_in_the_meantime_is_reported(memory, tmp_path, monkeypatch):
    path, other = (memory.save(text).path for text in ("Ada keeps bees.", "Bo sails."))
    get = Memory.get

    def forgetting(self, wanted, *given, **options):
        return get(self, "saved/2000-01-01/0" if wanted == path else wanted, *given, **options)

    monkeypatch.setattr(Memory, "get", forgetting)
    report = memory.extension("links").bundle(memory, tmp_path / "bundle")
    assert [each.path for each in report.skipped] == [path]
    assert list(concepts_of(tmp_path / "bundle")) == [f"{other}.md"]


def test_the_command(memory, tmp_path):
    memory.save("Ada keeps bees.")
    options = ["--data-dir", str(tmp_path / "data"), "export", "--format", "okf"]
    done = CliRunner().invoke(cli, [*options, str(tmp_path / "bundle"), "--json"], prog_name="klaw")
    assert json.loads(done.stdout)["counts"] == {"saved": 1}
    assert concepts_of(tmp_path / "bundle")
    again = CliRunner().invoke(cli, [*options, str(tmp_path / "bundle")], prog_name="klaw")
    assert again.exit_code == 1
    assert "not empty" in again.stderr
    assert CliRunner().invoke(cli, [*options, "-"], prog_name="klaw").exit_code == 2


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("head", "written"),
    [
        ("type: [a, b]\nn: 010\n", "type: [a, b]\nn: 010\n"),
        ("# c\ntype: ~ # d\nn: {a: [1, 010]}\n", "# c\ntype: ~ # d\nn: {a: [1, 010]}\n"),
        ("n: 010 # x\nup: '[[b]]'\n", "type: Note\nn: 010 # x\nup: '[b](/vault/b.md)'\n"),
        ("a: &x [1]\nb: *x\nc: see [[b]] there\n", "type: Note\na: &x [1]\nb: *x\nc: see [[b]] there\n"),
        ("up:\n- b.md # x\n- b.md\n", "type: Note\nup:\n- /vault/b.md # x\n- /vault/b.md\n"),
        ("{n: 010}\n", "{type: Note, n: 010}\n"),
        ("", "type: Note\n"),
    ],
)
def test_front_matter_stays_as_it_is_written(memory, tmp_path, head, written, line_end):
    text = f"---\n{head}---\nText.\n\n[[b]]\n".replace("\n", line_end)
    memory.index(vault_of(tmp_path, {"a.md": text, "b.md": f"B.{line_end}"}))
    memory.extension("links").bundle(memory, tmp_path / "bundle")
    wanted = f"---\n{written}---\nText.\n\n[b](/vault/b.md)\n".replace("\n", line_end)
    assert (tmp_path / "bundle" / "vault" / "a.md").read_bytes().decode() == wanted
    plain = (tmp_path / "bundle" / "vault" / "b.md").read_bytes().decode()
    assert plain == "---\ntype: Note\n---\nB.\n".replace("\n", line_end)


def test_a_note_whose_front_matter_loses_something_is_named(memory, tmp_path):
    texts = ("title: Rust: a history\nn: {a: 1}\n", "type: [x]\n", "title: fine\n", "type: ~\n")
    memory.index(vault_of(tmp_path, {f"{number}.md": f"---\n{text}---\nText.\n" for number, text in enumerate(texts)}))
    untyped, anew = memory.extension("links").bundle(memory, tmp_path / "bundle").notices
    assert untyped.endswith(": vault/1.md, vault/3.md")
    assert anew.endswith("not valid YAML: vault/0.md")


def test_a_bundle_in_a_workspace_is_refused(memory, tmp_path):
    vault = vault_of(tmp_path, {"a.md": "A\n"})
    memory.index(vault)
    links = memory.extension("links")
    with pytest.raises(StoreError, match="is in the workspace vault"):
        links.bundle(memory, vault / "bundle")
    assert links.bundle(memory, vault / ".bundle").counts == {"note": 1}
    memory.workspaces.exclude("vault", "out", "drafts/*")
    (vault / "drafts").mkdir()
    assert links.bundle(memory, vault / "out").counts == links.bundle(memory, vault / "drafts" / "one").counts
    (tmp_path / "f").write_text("")
    with pytest.raises(StoreError, match="is a file"):
        links.bundle(memory, tmp_path / "f")
