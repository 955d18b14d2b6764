"""Links: what is read as one, which document it means, what links back, and what is broken."""

import json

import pytest
from click.testing import CliRunner

from klaw_core import Memory, NotFoundError, load_config
from klaw_core.cli.program import cli
from klaw_notes.links.graph import BrokenLink, Edge
from klaw_notes.links.reading import Link, links_of_metadata, links_of_text

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
        ("[[A#H|label]] [[A#H#Deep]]", [Link("A", "H"), Link("A", "Deep")]),
        ("[[A#^1a2b]] [[A^1a2b]]", [Link("A"), Link("A")]),
        ("![[A]]", [Link("A")]),
        ("[a](b.md) [c](<d e.md#f> 'title')", [Link("b.md", is_path=True), Link("d e.md", "f", is_path=True)]),
        ("[a](b%20c.md?x=1#y-z)", [Link("b c.md", "y-z", is_path=True)]),
        ("[a [b] c](d.md)", [Link("d.md", is_path=True)]),
        ("[a](https://x.org/b.md) [b](mailto:a@b.c) [c](#here) [d](//x.org)", []),
        ("`[[A]]` <!-- [[B]] --> ``[x](y.md)``", []),
        ("```\n[[A]]\n```\n[[B]]", [Link("B", line=4)]),
        ("[[#Here]] [[]] [x]() [[A", []),
        ("[" * 5_000 + "](" * 5_000, []),
    ],
)
def test_what_a_link_is(text, found):
    assert list(links_of_text(text)) == found


def test_relations_in_front_matter():
    given = {"up": "[[Home]]", "related": ("[[A|b]]", "c/d.md"), "title": "not one", "number": 3}
    assert list(links_of_metadata(given)) == [
        Link("Home", kind="up"),
        Link("A", kind="related"),
        Link("c/d.md", kind="related", is_path=True),
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
    (tmp_path / "other" / "x.md").write_text("[[Home]] [y](../vault/Home.md)\n", "utf-8")
    memory.index(tmp_path / "other")
    found = memory.extension("links").of("other/x.md")
    assert (found.to, [each.target for each in found.broken]) == ((), ["Home", "../vault/Home.md"])


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
            "  vault/Home.md  (up)  line 1",
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
