"""What the website adds to the pages in ``docs``: navigation, Python API pages, and the READMEs of plugins.

A link to a file outside ``docs`` leads to the page made of that file. If there is none, as for source code, the link
becomes plain text.
"""

from __future__ import annotations

import ast
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.append(str(Path(__file__).parent))
from llms import llms  # beside this file

ROOT = Path(__file__).parent.parent.parent
_SECTIONS = {
    "Tutorials": "tutorial",
    "How to": "how-to",
    "Reference": "reference",
    "Measurements": "measurements",
    "Decisions": "decisions",
    "Explanation": "explanation",
}
#: Those that are below the last one in the navigation, because few readers need them.
_BELOW = ("Measurements", "Decisions")
#: Files outside ``docs`` that become pages.
_COPIED = {"CHANGELOG.md": "reference/changelog.md", "benchmarks/README.md": "explanation/benchmarks.md"}
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^(?:```|~~~)")
_CODE = re.compile(r"`[^`]+`")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Build the navigation from the directories, so that no page is missing, in the order of the first page."""
    docs = Path(config.docs_dir)
    home = (docs / "README.md").read_text("utf-8")
    config.nav = [{"Home": "README.md"}]
    below: list[Any] = []
    for title, directory in _SECTIONS.items():
        pages = sorted(path.relative_to(docs).as_posix() for path in (docs / directory).glob("*.md"))
        pages.sort(key=lambda page: (not page.endswith("README.md"), _place(home, page)))
        entries: list[Any] = pages
        if directory == "reference":
            entries += [_COPIED["CHANGELOG.md"], {"Python API": sorted(_api())}, {"Plugins": sorted(_plugins())}]
        if title in _BELOW:
            below.append({title: entries})
            continue
        config.nav.append({title: entries})
    config.nav[-1]["Explanation"] += [*below, _COPIED["benchmarks/README.md"]]
    return config


def _place(home: str, page: str) -> int:
    """Return where the first page links to a page, so that the navigation has its order; others come last."""
    return home.find(f"({page})") % (len(home) + 1)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made of other files."""
    pages = {target: (ROOT / source).read_text("utf-8") for source, target in _sources().items()}
    for target, text in (_api() | pages).items():
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let links out of ``docs`` lead to the pages made of those files."""
    made = {target: source for source, target in _sources().items()}
    place = page.file.src_uri
    source = made.get(place, f"docs/{place}")
    lines, in_code = [], False
    for each in markdown.split("\n"):
        line = each
        if _FENCE.match(line.strip()):
            in_code = not in_code
        if not in_code:
            line = _LINK.sub(lambda link: _retargeted(link, source, place), line)
            if line.startswith("|"):  # in a table GitHub needs \\| in code, and Python-Markdown shows the backslash
                line = _CODE.sub(lambda code: code.group().replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)


def on_post_build(config: MkDocsConfig) -> None:
    """Add the list of all pages that language models read."""
    text = llms(Path(config.docs_dir), config.site_name, config.site_description or "", _SECTIONS)
    (Path(config.site_dir) / "llms.txt").write_text(text, "utf-8")


def _retargeted(link: re.Match[str], source: str, place: str) -> str:
    text, path, anchor = link.group(1), link.group(2), link.group(3) or ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    page = _sources().get(target)
    if target == "README.md":
        page = "README.md"
    elif target.startswith("docs/") and not target.endswith(".py"):
        page = target.removeprefix("docs/")
    if page is None:
        return text if (ROOT / target).exists() else link.group()  # the link check reports what is not there
    return f"[{text}]({posixpath.relpath(page, posixpath.dirname(place))}{anchor})"


def _sources() -> dict[str, str]:
    """Return the files outside ``docs`` that become pages, and the page of each."""
    return _COPIED | {readme: page for page, readme in _plugins().items()}


def _plugins() -> dict[str, str]:
    readmes = sorted((ROOT / "plugins").glob("*/README.md"))
    return {f"reference/plugins/{path.parent.name}.md": path.relative_to(ROOT).as_posix() for path in readmes}


def _api() -> dict[str, str]:
    """Return a page for each part of ``klaw_core``, with its public names."""
    parts: dict[str, list[str]] = {}
    for module, names in _public_names().items():
        parts.setdefault(module.partition(".")[0], []).extend(f"klaw_core.{module}.{name}" for name in names.split())
    parts["journals"] = [f"klaw_journals.{name}" for name in ("Chat", "Message", "NewDocument")]
    return {
        f"reference/api/{part}.md": "\n\n".join(
            [f"# `{part}`", "All names are imported from `klaw_core`.", *(f"::: {name}" for name in sorted(names))]
        )
        for part, names in parts.items()
    }


def _public_names() -> dict[str, str]:
    """Return the public names of each module, as ``klaw_core`` lists them."""
    tree = ast.parse((ROOT / "klaw_core" / "__init__.py").read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_MODULES":
            return dict(ast.literal_eval(node.value))
    raise LookupError("klaw_core/__init__.py assigns no _MODULES")
