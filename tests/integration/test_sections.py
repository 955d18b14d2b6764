"""A section of a note is named by its heading, whether it has a chunk of its own or shares one."""

import pytest

from klaw_core import NotFoundError

NOTE = """# Harbour

The harbour opens at six.

## Ferries

They leave at seven.

```sh
## Prices
```

### Island ferry

It leaves at eight.

## Prices ##

A ticket costs two crowns.
"""


LONG = "\n\n".join(["The boat needs new paint, and the mast a rope. " * 8] * 8)
#: A long section after a short one: the first chunk has the beginning of both, and others only parts of one.
LOG = f"# Log\n\nShort.\n\n## Boats\n\n{LONG}\n\n## Nets\n\nNets are dry.\n\n{LONG}\n"


def test_a_section_is_whole_although_chunks_begin_and_end_elsewhere(home):
    home.write("log.md", LOG)
    home.write("c#.md", "# C# & C++\n\nA language.\n\n# Other\n")
    lines = LOG.split("\n")
    with home.open() as memory:
        memory.index(home.notes)
        assert len(memory.search("paint", per_document=None)) > 2
        boats = memory.get("notes/log.md#Boats")
        assert (boats.start_line, boats.end_line) == (lines.index("## Boats") + 1, lines.index("## Nets"))
        assert memory.get("notes/c#.md#C# & C++").content == "# C# & C++\n\nA language.\n\n"
        assert memory.get("notes/c#.md#other").start_line == 5
        with pytest.raises(NotFoundError, match="some of its headings: Log; Boats; Nets"):
            memory.get("notes/log.md#Sails")


@pytest.mark.parametrize(
    ("heading", "line"), [("C#", 1), ("C++", 3), ("c++", 1), ("`open`", 7), ("`open(..)`", 5), ("Why? {#why}", 9)]
)
def test_the_heading_with_the_same_characters_comes_before_others_with_the_same_words(home, heading, line):
    home.write("c.md", "# C#\n\n# C++\n\n# `open(..)`\n\n# `open`\n\n# Why? {#why}\n")
    with home.open() as memory:
        memory.index(home.notes)
        assert memory.get(f"notes/c.md#{heading}").start_line == line


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("heading", "first", "last"),
    [("harbour", 1, 19), ("Ferries", 5, 16), ("island-ferry", 13, 16), ("prices", 17, 19)],
)
def test_a_section_is_its_lines(home, heading, first, last, end):
    home.write("a.md", NOTE.replace("\n", end))
    with home.open() as memory:
        memory.index(home.notes)
        found = memory.get(f"notes/a.md#{heading}")
        assert (found.start_line, min(found.end_line, 19)) == (first, last)
        with pytest.raises(NotFoundError, match="has no section 'Boats'"):
            memory.get("notes/a.md#Boats")
