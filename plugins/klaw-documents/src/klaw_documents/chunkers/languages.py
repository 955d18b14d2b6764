"""The programming languages that are split by their syntax, and the packages of their tree-sitter grammars."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Language:
    """A language: its name, the package of its grammar and the function in it, and its file name extensions."""

    title: str
    package: str
    suffixes: tuple[str, ...]
    function: str = "language"


LANGUAGES: Mapping[str, Language] = {
    "bash": Language("Bash", "tree_sitter_bash", (".sh", ".bash")),
    "c": Language("C", "tree_sitter_c", (".c", ".h")),
    "cpp": Language("C++", "tree_sitter_cpp", (".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx")),
    "csharp": Language("C#", "tree_sitter_c_sharp", (".cs",)),
    "go": Language("Go", "tree_sitter_go", (".go",)),
    "java": Language("Java", "tree_sitter_java", (".java",)),
    "javascript": Language("JavaScript", "tree_sitter_javascript", (".js", ".cjs", ".mjs", ".jsx")),
    "php": Language("PHP", "tree_sitter_php", (".php",), "language_php"),
    "python": Language("Python", "tree_sitter_python", (".py", ".pyi")),
    "ruby": Language("Ruby", "tree_sitter_ruby", (".rb",)),
    "rust": Language("Rust", "tree_sitter_rust", (".rs",)),
    "tsx": Language("TypeScript", "tree_sitter_typescript", (".tsx",), "language_tsx"),
    "typescript": Language("TypeScript", "tree_sitter_typescript", (".ts", ".cts", ".mts"), "language_typescript"),
}

#: The language of each file name extension.
SUFFIXES: Mapping[str, str] = {suffix: name for name, language in LANGUAGES.items() for suffix in language.suffixes}
