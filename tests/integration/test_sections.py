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
