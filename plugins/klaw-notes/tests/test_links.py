"""Links: what is read as one, which document it means, what links back, and what is broken."""

import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

from klaw_core import Memory, NotFoundError, load_config
from klaw_core.cli.program import cli
from klaw_notes.links import reading
from klaw_notes.links.graph import BrokenLink, Edge, LinkedDocument, LinkGraph
from klaw_notes.links.reading import Link, anchors_of, links_of_metadata, read_markdown
from klaw_testing.laws import executed_lines

VAULT = {
    "Home.md": "# Home\n\n[[Ferry]] and [the plan](plans/Dock%20plan.md#next-steps), [[Nowhere|gone]].\n",
    "Ferry.md": '---\naliases: [Boat]\nup: "[[Home]]"\n---\n# Ferry\n\nSee [[Dock plan#Next steps]], '
    "[[Ferry#Nothing]].\n",
    "plans/Dock plan.md": "# Dock\n\n## Next steps\n\nAsk [[People/Jaana]]. [up](../Home.md)\n",
    "People/Jaana.md": "Steers the [[boat]]. ![[photo.png]] [web](https://example.org)\n",
    "People/Bo.md": "Nobody.\n",
}


@pytest.fixture
def vault(tmp_path):
    for name, text in VAULT.items():
        path = tmp_path / "vault" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "vault"


@pytest.fixture
def config_file(tmp_path):
    file = tmp_path / "config.toml"
    file.write_text('[memory.embedding]\ntype = "none"\n[extensions.links]\nneighbours = 2\n', "utf-8")
    return file


@pytest.fixture
def memory(tmp_path, vault, config_file):
    config = load_config(config_file=config_file, data_dir=tmp_path / "data")
    with Memory.open(config) as memory:
        memory.index(vault)
        yield memory


@pytest.fixture
def klaw(memory, tmp_path, config_file):
    assert memory.documents()

    def run(*words):
        options = ["--config", str(config_file), "--data-dir", str(tmp_path / "data")]
        return CliRunner().invoke(cli, [*options, *words], prog_name="klaw")

    return run


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[A]]", [Link("A")]),
        ("[[A#H|label]] [[A#H#Deep]]", [Link("A", "H"), Link("A", "H#Deep")]),
        ("[[A#B? 100% & more: #1]]", [Link("A", "B? 100% & more: #1")]),
        (r"\[esc](gone.md) \[[gone]] [[a]\] [a\](b.md) \![p](q.md)", [Link("q.md", is_path=True)]),
        (r"\\[[A]] [a \[b\]](c.md)", [Link("A"), Link("c.md", is_path=True)]),
        ("%% [[A]] %% [[B]] 5%% [[C]]", [Link("B"), Link("C")]),
        ("%%\n[[A]]\n\n- [[A]]\n\n%%\n\n[[B]]", [Link("B", line=8)]),
        ("5%% of\n\n[[A]] 6%% `%%` [[B]]\n\n%%\n\n[[C]]", [Link("A", line=3), Link("B", line=3), Link("C", line=7)]),
        (
            "[r][1] [r][] [r] [s]\n\n[1]: b.md\n[r]: <c d.md#e> 't'",
            [Link("b.md", is_path=True), *[Link("c d.md", "e", is_path=True)] * 2],
        ),
        (
            "a\n![p][R] `[R]` \\[R] <!-- [R] --> %% [R] %% [[R]]\n\n> [r]: x.md\n",
            [Link("x.md", line=2, is_path=True), Link("R", line=2)],
        ),
        ("[a]: b.md\n[c]: https://x.org\ntext [a] [c]", [Link("b.md", line=3, is_path=True)]),
        ("[x](a%23b.md#c%23)", [Link("a#b.md", "c#", is_path=True)]),
        ("[[A#^1a2b]] [[A^1a2b]]", [Link("A"), Link("A")]),
        ("![[A]]", [Link("A")]),
        ("[a](b.md) [c](<d e.md#f> 'title')", [Link("b.md", is_path=True), Link("d e.md", "f", is_path=True)]),
        ("[a](b%20c.md?x=1#y-z)", [Link("b c.md", "y-z", is_path=True)]),
        ("[a [b] c](d.md)", [Link("d.md", is_path=True)]),
        ("[a](https://x.org/b.md) [b](mailto:a@b.c) [c](#here) [d](//x.org)", []),
        ("`[[A]]` <!-- [[B]] --> ``[x](y.md)``", []),
        ("```\n[[A]]\n```\n[[B]]", [Link("B", line=4)]),
        ("[[#Here]] [[]] [x]() [[A", []),
        ("Run:\n\n    if [[ -f x ]]\n\n[[B]]", [Link("B", line=5)]),
        ("<!--\n[[Gone]]\n\n[c](c.md)\n-->\n[[B]]", [Link("B", line=6)]),
        ("a <!-- [[Gone]]\n[[Gone]] --> [[B]]", [Link("B", line=2)]),
        ("- ```sh\n  [[ -f x ]]\n  ```\n- [[B]]\n", [Link("B", line=4)]),
        ("> ~~~\n> [[A]]\n\n[[B]]", [Link("B", line=4)]),
        ("a `b\n[[A]]` [[B]] `c", [Link("B", line=2)]),
        ("![see `[[A]]`](b.png) [[B]]", [Link("b.png", is_path=True), Link("B")]),
        (
            "| a | b |\n|---|---|\n| `c | [[B\\|d]] |\n| e | [f](g.md) |",
            [Link("B", line=3), Link("g.md", "", 4, is_path=True)],
        ),
        ("> a [long\n> label](b.md)", [Link("b.md", is_path=True)]),
        ("Title [[A]]\n===\n", [Link("A")]),
        ("[" * 5_000 + "](" * 5_000, []),
    ],
)
def test_what_a_link_is(text, found):
    links, _ = read_markdown(text)
    assert list(links) == found


# Each part may be in code, in a comment, in both or in neither, as the parts around it decide.
PARTS = (
    *(
        "[[T]]",
        "[[T]]",
        "[[T|x]]",
        "[a](T)",
        "![[[T]]](b.png)",
        "![`a",
        "](c.md)",
        "](b`c)",
        "[",
        "]",
        "\\`",
        "\\",
        "a",
    ),
    *("`", "`", "``", "```", "~~~", "<!--", "-->", "<b title='", "'>", "<https://x.org/`>", "<pre>", "</pre>", "<div>"),
    *("[a][r]", "[r]", "![p][R]", "\n\n[r]: D.md\n", "\n\n[r]: D.md\n", "%% [[T]] %%"),
    *("\n", "\n", "\n\n", "    ", "\t", " ", "- ", "1. ", "> ", "# ", "---", "|", "|-|-|", "\r\n"),
)
IS_TARGET = re.compile(r"N\d+")


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PARTS), max_size=24))
@example(["- ", "```", "\n", "[[T]]", "\n", "```", "\n", "[[T]]"])
@example(["[a](b`c)", " ", "`", "[[T]]", "`"])
@example(["![`a", "[[T]]", "`", "](c.md)"])
def test_no_link_is_read_from_code_and_comments_and_none_else_is_missed(parts):
    text = "".join(part.replace("T", f"N{number}").replace("D", f"D{number}") for number, part in enumerate(parts))
    hidden, shown, defined = set(), set(), set()
    for token in tokens_of(plain().parse(text)):
        if token.type in {"code_block", "fence", "code_inline", "html_block", "html_inline"}:
            hidden.update(IS_TARGET.findall(token.content))
        elif token.type == "text":
            bare = re.sub(r"%%.*?%%", "", token.content)
            hidden.update(set(IS_TARGET.findall(token.content)) - set(IS_TARGET.findall(bare)))
            shown.update(re.findall(r"\[\[(N\d+)\]\]", bare))
        address = str(token.attrs.get("href") or token.attrs.get("src") or "")
        defined.update(re.findall(r"D\d+\.md", address))
    links, _ = read_markdown(text)
    read = {name for link in links for name in IS_TARGET.findall(link.target)}
    assert read & hidden == set()
    assert shown - read == set()
    if "[[r]" not in text:  # which may be a link of another kind
        assert {link.target for link in links if link.target.startswith("D")} == defined


@given(st.lists(st.sampled_from(("[", "]", "[[N1]]", "[a](N2)", "\\", "\\[", "\\]", "a", " ", "`")), max_size=12))
def test_an_escaped_bracket_is_none(parts):
    text = "".join(parts)
    links, _ = read_markdown(text)
    shown = "\0".join(token.content for token in tokens_of(plain().parse(text)) if token.type == "text")
    assert {link.target for link in links if not link.is_path} <= set(re.findall(r"\[\[([^\[\]\0]+)\]\]", shown))
    addresses = {token.attrs.get("href") for token in tokens_of(plain().parse(text))}
    assert {link.target for link in links if link.is_path} <= addresses


def plain():
    """Return markdown-it-py with the same rules for blocks. What is escaped is a token of its own."""
    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    return parser.disable(["text_join", "fragments_join"], ignoreInvalid=True)


def tokens_of(tokens):
    for token in tokens:
        yield token
        yield from tokens_of(token.children or ())


@pytest.mark.parametrize("shape", ["`a ``b ", "<!-- ", "<a b='", "[`](", "![", "[[A]] `b` ", "[a](b"])
def test_hostile_texts_take_linear_time(shape):
    read_markdown("# [[warm]] `up`")
    small, large = (executed_lines(lambda text=shape * times: read_markdown(f"[[A]] {text}")) for times in (300, 1200))
    assert large <= 5 * small + 1000


@pytest.mark.parametrize("name", [name for name, value in vars(reading).items() if isinstance(value, re.Pattern)])
def test_a_pattern_that_is_searched_for_in_a_text_looks_at_a_limited_part_at_each_place(name):
    pattern = getattr(reading, name)
    only_at_the_start = {"_SCHEME", "_NOTE"}
    widest = re._parser.parse(pattern.pattern, pattern.flags & re.VERBOSE).getwidth()[1]
    assert name in only_at_the_start or widest < 200_000


@pytest.mark.parametrize(
    ("headings", "anchors"),
    [
        (["It's fine", "Version 1.2"], {"its-fine", "version-12"}),
        (["Setup", "Setup", "Setup 1", "SETUP"], {"setup", "setup-1", "setup-1-1", "setup-2"}),
        (["A - B", "snake_case", "Käse"], {"a---b", "a-b", "snake_case", "käse"}),
        (["`klaw links` and [more](x.md)", "Own {#name}"], {"klaw-links-and-more", "own", "name"}),
    ],
)
def test_headings_have_the_anchors_of_github(headings, anchors):
    _, titles = read_markdown("\n\n```\n# no heading\n```\n".join(f"## {heading}" for heading in headings))
    found = anchors_of(titles)
    assert anchors <= found
    assert "no-heading" not in found


def test_an_id_is_an_anchor_and_a_heading_may_have_signs(memory, vault):
    text = '# Top <a id="x"></a>\n\n<a name="Y.z"></a>text `<a id="code">`\n\n# What? 100% & more: #1\n\n## Deep\n'
    (vault / "My Note.md").write_text(text, "utf-8")
    links = "[[My Note#What? 100% & more: #1]] [[My Note#Top#Deep]] [a](<My Note.md#x>) [a](<My Note.md#Y.z>)"
    (vault / "n.md").write_text(f"{links} [a](<My Note.md#code>) [[My Note#Top#Gone]] [a](<My Note.md#top>)\n", "utf-8")
    memory.index()
    found = memory.extension("links").of("vault/n.md")
    assert [edge.heading for edge in found.to] == ["What? 100% & more: #1", "Deep", "x", "Y.z", "top"]
    assert [each.target for each in found.broken] == ["My Note.md#code", "My Note#Top#Gone"]


def test_relations_in_front_matter():
    given = {
        "up": "[[Home]]",
        "related": ("[[A|b]]", "c/d.md"),
        "title": "not one",
        "free": "see [[x]] there",
        "number": 3,
    }
    assert list(links_of_metadata(given)) == [
        Link("Home", line=None, kind="up"),
        Link("A", line=None, kind="related"),
        Link("c/d.md", line=None, kind="related", is_path=True),
    ]


def test_links_to_from_and_broken(memory):
    home = memory.extension("links").of("vault/Home.md")
    assert home.to == (
        Edge("vault/Home.md", 3, "vault/Ferry.md"),
        Edge("vault/Home.md", 3, "vault/plans/Dock plan.md", "next-steps"),
    )
    assert [(edge.path, edge.kind) for edge in home.backlinks] == [
        ("vault/Ferry.md", "up"),
        ("vault/plans/Dock plan.md", "link"),
    ]
    assert home.broken == (BrokenLink("vault/Home.md", 3, "Nowhere", "no such document"),)


def test_an_alias_is_a_name_and_a_missing_heading_is_broken(memory):
    links = memory.extension("links")
    assert [edge.target for edge in links.of("vault/People/Jaana.md").to] == ["vault/Ferry.md"]
    assert links.of("vault/People/Jaana.md").broken == ()  # neither the picture nor the web page
    (broken,) = links.of("vault/Ferry.md").broken
    assert (broken.target, broken.reason) == ("Ferry#Nothing", "vault/Ferry.md has no heading 'Nothing'")
    assert links.of("boat").path == "vault/Ferry.md"
    with pytest.raises(NotFoundError, match="no document has the name"):
        links.of("nobody")


def test_the_graph_follows_the_index(memory, vault):
    links = memory.extension("links")
    assert links.of("vault/People/Bo.md").backlinks == ()
    (vault / "Home.md").write_text("[[Bo]]\n", "utf-8")
    memory.index()
    assert [edge.path for edge in links.of("vault/People/Bo.md").backlinks] == ["vault/Home.md"]
    memory.forget("vault/Home.md")
    assert links.of("vault/People/Bo.md").backlinks == ()
    assert "Home" in links.of("vault/Ferry.md").broken[0].target


def test_of_two_notes_of_a_name_the_nearest_is_meant(memory, vault):
    (vault / "plans" / "Bo.md").write_text("Another.\n", "utf-8")
    (vault / "plans" / "x.md").write_text("[[Bo]] [[People/Bo]]\n", "utf-8")
    memory.index()
    found = memory.extension("links").of("vault/plans/x.md")
    assert [edge.target for edge in found.to] == ["vault/plans/Bo.md", "vault/People/Bo.md"]


def test_a_link_means_no_document_of_another_source(memory, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "x.md").write_text("[[Home]] [y](../vault/Home.md) [z](../vault/Gone.md)\n", "utf-8")
    memory.index(tmp_path / "other")
    found = memory.extension("links").of("other/x.md")
    assert (found.to, [each.target for each in found.broken]) == ((), ["Home", "../vault/Gone.md"])


def test_a_path_means_no_document_elsewhere_with_its_name(memory, vault):
    for name in ("x/a.md", "y/b.md", "b/c.md"):
        (vault / name).parent.mkdir(exist_ok=True)
        (vault / name).write_text("[b](b.md) [d](../b.md) [h](./Home.md) [i](y/b.md) [[b]]\n", "utf-8")
    memory.index()
    found = memory.extension("links").of("vault/x/a.md")
    assert [each.target for each in found.broken] == ["b.md", "../b.md", "./Home.md"]
    assert [edge.target for edge in found.to] == ["vault/y/b.md", "vault/y/b.md"]  # from the root; by name


def test_a_link_to_a_file_that_klaw_does_not_index_is_not_broken(memory, vault):
    there = ("src/x.py", "LICENSE", "img/a/b", "sub/own.rs", "../README.md", "../code/x.py")
    for name in there:
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / name).write_text("x\n", "utf-8")
    links = "[a](../src/x.py) [b](../LICENSE) [c](../img/) [d](own.rs) [e](../../README.md#top) [f](../../code/x.py)"
    rooted = "[g](/src/x.py) [h](src/x.py) [[own.rs]] [[src/x.py]] [[LICENSE]]"
    gone = ("gone.py", "../img/c", "../../code", "/vault", "x" * 300, "LICENSE2", "../../../vault/LICENSE")
    (vault / "sub" / "n.md").write_text(f"{links} {rooted} {' '.join(f'[x]({each})' for each in gone)} [[img]]\n")
    memory.index()
    found = memory.extension("links").of("vault/sub/n.md")
    assert [each.target for each in found.broken] == [each for each in (*gone, "img") if each != "../../code"]
    assert found.to == ()


def test_what_has_no_directory_here_has_broken_links_only_to_what_could_be_indexed(memory, vault):
    path = memory.save("[a](src/x.py) [b](LICENSE) [c](gone.md) [[Gone]]").path
    found = memory.extension("links").of(path)
    assert [each.target for each in found.broken] == ["gone.md", "Gone"]
    (vault / "Home.md").write_text("[a](gone.py) [b](gone.md)\n", "utf-8")
    memory.index()
    vault.rename(vault.with_name("elsewhere"))
    assert [each.target for each in memory.extension("links").of("vault/Home.md").broken] == ["gone.md"]


def test_a_workspace_of_the_configuration_has_a_directory_too(tmp_path, vault):
    (vault / "x.py").write_text("x\n", "utf-8")
    (vault / "Home.md").write_text("[a](x.py) [b](y.py)\n", "utf-8")
    file = tmp_path / "own.toml"
    table = f'[[memory.sources]]\ntype = "workspace"\npath = "{vault.as_posix()}"\nname = "own"\n'
    file.write_text(f'[memory.embedding]\ntype = "none"\n{table}', "utf-8")
    with Memory.open(load_config(config_file=file, data_dir=tmp_path / "own")) as memory:
        memory.index()
        assert [each.target for each in memory.extension("links").of("own/Home.md").broken] == ["y.py"]


def graph_of(*documents):
    return LinkGraph({path: LinkedDocument(path, names=names) for path, *names in documents})


@pytest.mark.parametrize(
    ("paths", "link", "found"),
    [
        (["v/Note.md", "v/note.md"], Link("note.md", is_path=True), "v/note.md"),
        (["v/Note.md", "v/note.md"], Link("Note.md", is_path=True), "v/Note.md"),
        (["v/Note.md", "v/note.md"], Link("note"), "v/note.md"),
        (["v/Note.md", "v/note.md"], Link("note.md"), "v/note.md"),
        (["v/Note.md", "v/note.md"], Link("NOTE"), "v/Note.md"),
        (["v/Note.md", "v/deep/note.md"], Link("note"), "v/deep/note.md"),
        (["v/sub/Note.md", "v/sub/deep/note.md"], Link("note"), "v/sub/deep/note.md"),
        (["v/INDEX.md", "v/index.md"], Link("index", is_path=True), "v/index.md"),
        (["v/Note.md"], Link("note"), "v/Note.md"),
        (["v/Cafe\u0301.md"], Link("Caf\u00e9"), "v/Cafe\u0301.md"),
        (["v/Caf\u00e9.md"], Link("Cafe\u0301.md", is_path=True), "v/Caf\u00e9.md"),
        (["v/deep/CAFE\u0301.md"], Link("caf\u00e9"), "v/deep/CAFE\u0301.md"),
        (["v/Caf\u00e9.md", "v/Cafe\u0301.md"], Link("Cafe\u0301"), "v/Cafe\u0301.md"),
        (["v/Caf\u00e9.md", "v/Cafe\u0301.md"], Link("Caf\u00e9"), "v/Caf\u00e9.md"),
        (["v/CAF\u00c9.md", "v/Cafe\u0301.md"], Link("Caf\u00e9"), "v/Cafe\u0301.md"),
    ],
)
def test_the_closest_form_of_a_name_is_meant(paths, link, found):
    assert graph_of(*((path,) for path in paths)).target_of(link, "v/x.md") == found


def test_a_name_is_found_in_each_of_its_unicode_forms():
    graph = graph_of(("v/Cafe\u0301.md", "Bistro\u0302"), ("v/a.md",))
    for name in ("Caf\u00e9", "v/Caf\u00e9.md", "v/caf\u00e9.md", "Bistr\u00f4"):
        assert graph.named(name) == ["v/Cafe\u0301.md"]


def test_a_fence_and_a_heading_count_through_all_chunks(memory, vault):
    code = "".join(
        f'if [[ -f "file {number}" ]]; then echo {number}; fi  # [x](gone{number}.md)\n' for number in range(400)
    )
    (vault / "Long.md").write_text(f"# Setup\n\n```sh\n{code}```\n\n## Setup\n\n[[Home]]\n", "utf-8")
    (vault / "Short.md").write_text("[s](Long.md#setup-1) [t](Long.md#setup-2)\n", "utf-8")
    memory.index()
    links = memory.extension("links")
    assert links.of("vault/Long.md").to == (Edge("vault/Long.md", 408, "vault/Home.md"),)
    assert links.of("vault/Long.md").broken == ()
    assert [edge.heading for edge in links.of("vault/Short.md").to] == ["setup-1"]
    assert [each.target for each in links.of("vault/Short.md").broken] == ["Long.md#setup-2"]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_are_those_of_the_file(memory, vault, line_end):
    text = (
        "# A\n\n\n\n\n\n[[Home]]\n\n\n\n\n\n\n## B\n\n"
        + "Words of a long text. " * 300
        + "\n\n\n\n\n\n## C\n\n[[Ferry]]\n"
    )
    lines = [number for number, line in enumerate(text.split("\n"), start=1) if "[[" in line]
    assert len(lines) == 2
    (vault / "Gaps.md").write_bytes(text.replace("\n", line_end).encode())
    memory.index()
    assert [edge.line for edge in memory.extension("links").of("vault/Gaps.md").to] == lines


def test_neighbours_of_a_hit_are_part_of_a_context(memory):
    context = memory.context("who steers")
    linked = [item for item in context.items if item.heading == "Linked notes"]
    assert [item.source.rpartition(":")[0] for item in linked] == ["vault/Ferry.md", "vault/plans/Dock plan.md"]
    assert "linked with vault/People/Jaana.md" in str(context)


def test_what_others_wrote_is_no_neighbour(memory, vault):
    memory.index(vault, trust="foreign")
    context = memory.context("who steers")
    assert "Linked notes" not in str(context)


def test_without_the_option_a_context_has_no_neighbours(tmp_path, vault):
    file = tmp_path / "plain.toml"
    file.write_text('[memory.embedding]\ntype = "none"\n', "utf-8")
    with Memory.open(load_config(config_file=file, data_dir=tmp_path / "plain")) as memory:
        memory.index(vault)
        assert "Linked notes" not in str(memory.context("who steers"))


class TestCommand:
    def test_the_links_of_a_note(self, klaw):
        assert klaw("links", "vault/Ferry.md").stdout.splitlines() == [
            "links to:",
            "  vault/Home.md  (up)",
            "  vault/plans/Dock plan.md#Next steps  line 7",
            "linked from:",
            "  vault/Home.md:3",
            "  vault/People/Jaana.md:1",
            "broken:",
            "  Ferry#Nothing: vault/Ferry.md has no heading 'Nothing'  line 7",
        ]

    def test_a_file_or_a_name_will_do(self, klaw, vault):
        by_file = klaw("links", str(vault / "Ferry.md"), "--json").stdout
        assert json.loads(by_file) == json.loads(klaw("links", "Boat", "--json").stdout)
        assert json.loads(by_file)["path"] == "vault/Ferry.md"

    def test_all_broken_links(self, klaw):
        assert klaw("links").stdout.splitlines() == [
            "vault/Ferry.md:7  Ferry#Nothing: vault/Ferry.md has no heading 'Nothing'",
            "vault/Home.md:3  Nowhere: no such document",
        ]
        assert len(json.loads(klaw("links", "--json").stdout)) == 2

    def test_a_name_in_another_unicode_form_will_do(self, klaw, vault, memory):
        (vault / "Cafe\u0301.md").write_text("[[Home]]\n", "utf-8")
        memory.index()
        for name in ("Caf\u00e9", "vault/Caf\u00e9.md"):
            assert klaw("links", name).stdout.splitlines() == ["links to:", "  vault/Home.md  line 1"]

    def test_a_broken_link_in_front_matter_has_no_line(self, klaw, vault, memory):
        (vault / "Bare.md").write_text('---\nup: "[[Gone]]"\n---\nText.\n', "utf-8")
        memory.index()
        assert "vault/Bare.md  Gone: no such document" in klaw("links").stdout.splitlines()
        found = json.loads(klaw("links", "Bare", "--json").stdout)
        assert [each["line"] for each in found["broken"]] == [None]

    def test_no_link_is_said(self, klaw):
        assert "has no links" in klaw("links", "vault/People/Bo.md").stderr
        assert klaw("links", "nobody").exit_code == 1


def test_a_bundle_in_open_knowledge_format_is_read_as_it_is(memory, tmp_path):
    bundle = tmp_path / "bundle"
    (bundle / "tables").mkdir(parents=True)
    (bundle / "index.md").write_text(
        '---\nokf_version: "0.2"\n---\n# Tables\n\n- [Orders](tables/orders.md)\n', "utf-8"
    )
    (bundle / "tables" / "orders.md").write_text(
        "---\ntype: Table\ntitle: Orders\ntags: [sales]\n---\n"
        "One row for each order of a [customer](/tables/customers.md).\n",
        "utf-8",
    )
    (bundle / "tables" / "customers.md").write_text("---\ntype: Table\ntitle: Customers\n---\nWho buys.\n", "utf-8")
    memory.index(bundle)
    (found,) = memory.search("row for each order", 1).results
    assert (found.metadata["type"], found.metadata["tags"]) == ("Table", ("sales",))
    orders = memory.extension("links").of("bundle/tables/orders.md")
    assert [edge.target for edge in orders.to] == ["bundle/tables/customers.md"]
    assert [edge.path for edge in orders.backlinks] == ["bundle/index.md"]
