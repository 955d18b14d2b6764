"""Every address that Klaw shows leads back, with ``klaw get``, to the lines that it stands for."""

import json
import re

import pytest

LONG = "\n\n".join(f"Paragraph {number} about the lantern and its oil. " * 12 for number in range(6))
NOTES = {
    "changes.md": "# Changes\n\n## 1.1\n\n### Fixed\n\nThe lantern burns.\n\n"
    f"## 1.0\n\n### Fixed\n\nThe lantern smokes.\n\n{LONG}\n",
    "twice.md": "# Log\n\n## Setup\n\nFirst lantern.\n\n## Use\n\nLight it.\n\n"
    "## Setup\n\nSecond lantern.\n\n## Setup\n\nThird lantern.\n",
    "c# 10:30.md": "# Lantern at 10:30\n\nA lantern.\n\n# Other\n\nNo light.\n",
    "links.md": "# Links\n\nSee [the second](twice.md#setup-1), [the third](twice.md#setup-2), "
    "[fixed](changes.md#fixed-1) and [[twice#Log#Use]] of the lantern.\n",
}


@pytest.fixture
def lanterns(klaw, notes):
    for name, text in NOTES.items():
        (notes / name).write_text(text, "utf-8")
    klaw("index", str(notes))
    klaw("save", "The lantern is in the shed.\nIts oil, too.")
    return klaw


def addresses(klaw):
    """Return the addresses that each command shows, with their lines if these are shown."""
    text = klaw("search", "lantern", "-n", "50").stdout
    yield from (found[0].split(". ", 1)[1] for found in re.finditer(r"(?m)^ *\d+\. .+?:\d+-\d+(?=  |$)", text))
    yield from (f"{path}:{lines}" for path, lines in also(text))
    markdown = klaw("search", "lantern", "-n", "50", "--format", "md").stdout
    yield from re.findall(r"(?m)^### \d+\. (.+:\d+-\d+) \(", markdown)
    yield from re.findall(r"(?m)^==> (.+) <==$", klaw("get", "notes/*.md", "saved/*").stdout)
    yield from klaw("search", "lantern", "--format", "files").stdout.splitlines()
    yield from (each["path"] for each in json.loads(klaw("list", "--json").stdout))
    yield from (each["path"] for each in json.loads(klaw("recent", "--json").stdout))
    for result in json.loads(klaw("search", "lantern", "-n", "50", "--json").stdout):
        yield f"{result['path']}:{result['start_line']}-{result['end_line']}"
        yield from result["also"]
    for note in NOTES:
        shown = json.loads(klaw("links", f"notes/{note}", "--json").stdout)
        yield from (f"{edge['target']}#{edge['heading']}" for edge in shown["to"])
        yield from (f"{edge['path']}:{edge['line']}" for edge in shown["backlinks"])


def also(text):
    path = ""
    for line in text.splitlines():
        if found := re.match(r" *\d+\. (.+):\d+-\d+(?:  |$)", line):
            path = found[1]
        elif "also in lines " in line:
            yield from ((path, lines) for lines in line.split("also in lines ")[1].split(", "))


def test_every_address_leads_to_what_it_stands_for(lanterns):
    shown = list(dict.fromkeys(addresses(lanterns)))
    assert len(shown) > 20
    assert any(address.startswith("saved/") for address in shown)
    for address in shown:
        got = lanterns("get", address, "--json")
        assert got.exit_code == 0, (address, got.stderr)
        excerpt = json.loads(got.stdout)
        assert address.startswith(excerpt["path"])
        end = address.removeprefix(excerpt["path"])
        if lines := re.fullmatch(r":(\d+)(?:-(\d+))?", end):
            assert excerpt["start_line"] == int(lines[1])
            assert not lines[2] or excerpt["end_line"] == int(lines[2])


def test_a_link_to_the_second_heading_of_a_name_is_an_address_of_it(lanterns):
    shown = json.loads(lanterns("links", "notes/links.md", "--json").stdout)["to"]
    targets = [f"{edge['target']}#{edge['heading']}" for edge in shown]
    first = [lanterns("get", target).stdout.split("\n\n")[1] for target in targets]
    assert targets[:3] == ["notes/twice.md#setup-1", "notes/twice.md#setup-2", "notes/changes.md#fixed-1"]
    assert first == ["Second lantern.", "Third lantern.\n", "The lantern smokes.", "Light it."]


def test_the_headings_of_a_result_are_an_address_of_its_section(lanterns):
    results = json.loads(lanterns("search", "lantern", "-n", "50", "--json").stdout)
    named = [result for result in results if result["heading"]]
    assert {result["path"] for result in named} == {f"notes/{name}" for name in NOTES}
    for result in named:
        if result["heading"][-1] == "Setup":  # of one name in one section: its number tells which
            continue
        for heading in (" > ".join(result["heading"]), "#".join(result["heading"])):
            section = json.loads(lanterns("get", f"{result['path']}#{heading}", "--json").stdout)
            assert section["start_line"] <= result["end_line"]  # a chunk may have several short sections
            assert result["start_line"] <= section["end_line"]


def test_the_error_for_an_unknown_heading_lists_addresses(lanterns):
    error = lanterns("get", "notes/twice.md#Sails").stderr
    listed = error.split("some of its headings: ")[1].split(")")[0].strip().split("; ")
    assert listed == ["Log", "Setup", "Use", "Setup-1", "Setup-2"]
    lines = [json.loads(lanterns("get", f"notes/twice.md#{name}", "--json").stdout)["start_line"] for name in listed]
    assert lines == [1, 3, 7, 11, 15]


@pytest.mark.parametrize(
    ("end", "first", "last"),
    [(":12", 12, 14), (":12:1", 12, 12), (":12-13", 12, 13), (":1", 11, 14), (":13-99", 13, 14), (":11:2", 11, 12)],
)
def test_lines_of_a_section_are_those_of_the_document(lanterns, end, first, last):
    found = json.loads(lanterns("get", f"notes/twice.md#setup-1{end}", "--json").stdout)
    assert (found["start_line"], found["end_line"]) == (first, last)


@pytest.mark.parametrize("line", [2, 15, 99])
def test_a_line_outside_of_the_section_is_an_error_that_says_where_it_is(lanterns, line):
    found = lanterns("get", f"notes/twice.md#setup-1:{line}")
    assert found.exit_code == 1
    assert f"notes/twice.md#setup-1 is lines 11 to 14 of notes/twice.md; asked for line {line}" in found.stderr
