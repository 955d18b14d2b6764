"""Write the commands that install extras of Klaw in one form on every page: python tests/house/installs.py [--write].

A page says which extras it needs; the form is here. pip adds an extra to the environment that has Klaw. ``uv tool``
makes an environment of exactly what it is told, so it needs the default extra and all others as well. A reader uses the
line of the program that Klaw was installed with: a page never has one without the other.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
#: Pages about installing itself, and libraries that are imported, which a tool of uv cannot be.
_OWN_WORDS = (
    "README.md",
    "docs/README.md",
    "docs/how-to/install.md",
    "docs/how-to/contribute.md",
    "docs/how-to/troubleshooting.md",
)
_PIP, _UV = r"pip install -c constraints\.txt '\.\[([\w,-]+)\]'", r"uv tool install '\.\[([\w,-]+)\]'"
_COMMENT = r"(?:[ ]*#[^\n]*)?"
#: The forms that are replaced: one line of pip, with or without one of uv above or below it.
_FORMS = re.compile(
    rf"^(?P<indent>[ ]*)(?:# in (?:a|your) clone of Klaw[^\n]*\n[ ]*)?"
    rf"(?:{_PIP}{_COMMENT}(?:\n[ ]*{_UV}{_COMMENT})?|{_UV}{_COMMENT})$",
    re.MULTILINE,
)


def block(extras: str, indent: str = "") -> str:
    """Return the two commands that install some extras."""
    names = [name for name in extras.split(",") if not set(EXTRAS[name]) <= set(EXTRAS["default"])]
    pip, uv = f"pip install -c constraints.txt '.[{extras}]'", f"uv tool install '.[{','.join(['default', *names])}]'"
    width = max(len(pip), len(uv))
    one = f"{indent}{pip:<{width}}   # in a clone of Klaw, in the environment that has it"
    return f"{one}\n{indent}{uv:<{width}}   # or with uv; name all extras that you have"


def rewritten(text: str) -> str:
    """Return a page with every command that installs extras in the one form."""
    return _FORMS.sub(lambda found: block(found[2] or found[3] or found[4], found["indent"]), text)


def pages() -> list[Path]:
    """Return the pages whose commands have this form."""
    found = [path for place in ("docs/**/*.md", "plugins/*/README.md") for path in ROOT.glob(place)]
    return sorted(
        path for path in found if path.relative_to(ROOT).as_posix() not in _OWN_WORDS and "decisions" not in path.parts
    )


def main(arguments: list[str]) -> int:
    """Compare every page with the form, or write it; return 1 if one differs."""
    different = [path for path in pages() if rewritten(path.read_text("utf-8")) != path.read_text("utf-8")]
    for path in different:
        print(f"{path.relative_to(ROOT)}: the commands that install extras have another form")  # noqa: T201  # a program's output
        if "--write" in arguments:
            path.write_text(rewritten(path.read_text("utf-8")), "utf-8")
    return int(bool(different) and "--write" not in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
