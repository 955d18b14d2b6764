"""What is promised to users of the library."""

import re
from pathlib import Path

from klaw_core import Memory

_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


def test_every_public_member_of_memory_is_documented():
    table = _PAGE.read_text("utf-8").partition("| `Memory` |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in table.splitlines()[2:])))
    assert named == {name for name in dir(Memory) if not name.startswith("_")}
