"""Snippets show the part of a chunk that was asked for."""

import pytest

from klaw_core.cli.snippets import SNIPPET_CHARACTERS, Snippet, find_marks, make_snippet

FILLER = "Nothing of interest happens here. " * 40


def marked(text, query):
    return [text[start:end] for start, end in find_marks(text, query)]


def shown(snippet: Snippet):
    return [snippet.text[start:end] for start, end in snippet.marks]


def test_the_snippet_shows_the_match_instead_of_the_beginning():
    snippet = make_snippet(f"{FILLER}In the end we decided to use OIDC. {FILLER}", "what did we decide about OIDC")

    assert shown(snippet) == ["decided", "OIDC"]
    assert snippet.text.startswith("…")
    assert snippet.text.endswith("…")
    middle = snippet.text.index("decided")
    assert 100 < middle < 200


def test_distinct_words_count_more_than_one_repeated_word():
    often = "boat " * 30
    snippet = make_snippet(f"{often}{FILLER}the red boat sank. {FILLER}", "red boat sank")

    assert shown(snippet) == ["red", "boat", "sank"]


def test_a_short_chunk_is_shown_whole():
    assert make_snippet("Rye bread\nwith  buttermilk.", "bread") == Snippet("Rye bread with buttermilk.", ((4, 9),))


def test_without_a_match_the_beginning_is_shown():
    snippet = make_snippet(f"First words. {FILLER}", "zebra")

    assert snippet.text.startswith("First words. ")
    assert snippet.marks == ()


def test_snippets_are_cut_between_words():
    words = f"{FILLER}target {FILLER}".split()

    assert set(make_snippet(f"{FILLER}target {FILLER}", "target").text.strip("…").split()) <= set(words)


@pytest.mark.parametrize(
    ("text", "query", "marks"),
    [
        ("We decided it.", "decide", ["decided"]),
        ("authentication", "auth", ["authentication"]),
        ("deployed, deploy", "deploying", ["deployed", "deploy"]),
        ("CAFÉ and café", "cafe", ["CAFÉ", "café"]),
        ("STRASSE", "straße", ["STRASSE"]),
        ("ERR_TLS_42 and err_tls_43", "err_tls_42", ["ERR_TLS_42"]),
        ("port 8080, not 80", "80", ["80"]),
        ("an api, an apiary", "api", ["api"]),
        ("the cat and the hat", "what is the cat", ["cat"]),
        ("to be or not to be", "to be", ["to", "be", "to", "be"]),
        ("Помидоры сажаем в мае", "когда сажать помидоры", ["Помидоры", "сажаем"]),
        ("какой-то", "какой это сорт", []),
        ("下周发布新版本", "什么时候发布新版本", ["发布新版本"]),
        ("猫と犬", "犬", ["犬"]),
        ("版本v2已发布", "发布 v2", ["v2", "发布"]),
        ("text", "", []),
        ("text", "?!", []),
    ],
)
def test_matching_words_are_marked(text, query, marks):
    assert marked(text, query) == marks


def test_markdown_is_shown_as_plain_text():
    blocks = "## The plan\n\n- one thing\n- [x] done\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    content = f"{blocks}\n\n```sh\nls -l\n```\n\n---\nend"

    shown = "The plan: • one thing • [x] done quoted\na | b\n1 | 2\nls -l\nend"
    assert make_snippet(content, "").text == shown


def test_code_keeps_its_indentation_and_tasks_keep_their_state():
    code = "```py\ndef f():\n\treturn 1\n```"
    assert make_snippet(f"Like so\nand so:\n\n{code}\n\n- [ ] open\n- [x] done", "").text == (
        "Like so and so:\ndef f():\n    return 1\n• [ ] open • [x] done"
    )


@pytest.mark.parametrize("line", ["-|" * 20_000 + "x", "- " * 20_000 + "x", "|" * 20_000 + "-"])
def test_a_long_line_that_resembles_a_rule_takes_linear_time(line):
    assert make_snippet(f"{line}\nfound", "found").marks


def test_a_hash_or_a_dash_inside_a_line_is_kept():
    assert make_snippet("C# and F#\n-5 degrees\n#tag", "x").text == "C# and F# -5 degrees #tag"


def test_the_chosen_window_is_shown_without_a_matching_word():
    content = f"{FILLER}The physician prescribed antibiotics. {FILLER}"
    offered = []

    def choose(windows):
        offered.extend(windows)
        return next(at for at, window in enumerate(windows) if "physician prescribed antibiotics" in window)

    assert "physician prescribed antibiotics" in make_snippet(content, "zebra", choose=choose).text
    assert len(offered) > 2
    assert make_snippet(content, "zebra", choose=lambda _windows: None).text == make_snippet(content, "zebra").text


def test_the_windows_of_a_text_cover_it():
    words = " ".join(f"word{number}" for number in range(300))
    offered = []
    make_snippet(words, "zebra", choose=offered.extend)
    assert {word for window in offered for word in window.split()} == set(words.split())
    assert all(len(window) <= SNIPPET_CHARACTERS for window in offered)


def test_the_chooser_is_not_called_if_a_word_matches():
    def choose(_windows):
        raise AssertionError

    assert "target" in make_snippet(f"{FILLER}target {FILLER}", "target", choose=choose).text
    assert make_snippet("A short text.", "zebra", choose=choose).text == "A short text."


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        ("<< [[2026-11-19]] | [[2026-11-21]] >>\n\nWent to the [[People/Jaana|doctor]].", "Went to the doctor."),
        ("```dataview\nLIST FROM #person\n```\nThe gecko.", "The gecko."),
        (
            "See [the guide](https://example.org/a) and ![[map.png]], [[Plan#Boats]].",
            "See the guide and map.png, Plan > Boats.",
        ),
        ("```sh\na[[0]](x) b\n```", "a[[0]](x) b"),
        ("a [x] task, an [[open link, (c)", "a [x] task, an [[open link, (c)"),
    ],
)
def test_links_are_shown_as_their_labels_and_queries_are_left_out(content, shown):
    assert make_snippet(content, "nothing").text == shown
