"""``klaw search``, ``get``, ``save`` and ``forget``: questions and answers as a person types and reads them."""

import csv
import io
import json
import shlex
import shutil
import sys

import attrs
import pytest

from klaw_core.cli.program import cli
from klaw_core.memory import Memory
from klaw_core.values.runs import Excerpt


def found(result):
    assert result.exit_code == 0, result.stderr
    return [item["path"] for item in json.loads(result.stdout)]


class TestSearch:
    def test_a_result_shows_its_location_and_its_text(self, indexed):
        result = indexed("search", "what did we decide about tokens")

        where, heading, text = result.stdout.splitlines()[:3]
        assert where.startswith("1. notes/auth.md:1-6  0.")
        assert heading.startswith("   Auth")
        assert "We decided to use OIDC, because tokens expire." in text
        assert result.stderr == ""

    def test_the_query_needs_no_quotes(self, indexed):
        assert found(indexed("search", "--json", "rye", "bread")) == found(indexed("search", "--json", "rye bread"))

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("search", "--forse"), "if a word of QUERY begins with -: klaw search -- QUERY"),
            (("search", "-rye"), "if a word of QUERY begins with -: klaw search -- QUERY"),
            (
                ("core", "set", "user", "drinks", "--tea"),
                "if a word of VALUE begins with -: klaw core set -- SECTION KEY VALUE",
            ),
            (("facts", "edit", "f1", "--tea"), "if a word of TEXT begins with -: klaw facts edit -- ID TEXT"),
            (("context", "--forse"), "if a word of MESSAGE begins with -: klaw context -- MESSAGE"),
            (("search",), "missing argument 'QUERY...' →"),
            (("search", "-c", "memory"), "missing argument 'QUERY...' →"),
        ],
    )
    def test_a_query_that_is_missing_or_looks_like_an_option_is_told_what_to_type(self, indexed, arguments, said):
        result = indexed(*arguments)
        assert result.exit_code == 2
        assert said in result.stderr

    @pytest.mark.parametrize("asked", [("--path", "notes/"), ("--since", "2000-01-01"), ("path:notes/",)])
    def test_conditions_alone_list_the_newest_documents_without_a_relevance(self, indexed, asked):
        results = json.loads(indexed("search", "--json", *asked).stdout)
        assert len({result["path"] for result in results}) == len(results) > 1
        assert [result["created_at"] for result in results] == sorted(each["created_at"] for each in results)[::-1]
        assert {result["relevance"] for result in results} == {None}
        assert {result["is_weak"] for result in results} == {False}
        place = f"{results[0]['path']}:{results[0]['start_line']}-{results[0]['end_line']}"
        day = results[0]["created_at"][:10]
        assert indexed("search", *asked).stdout.startswith(f"1. {place}  {day}\n")
        assert indexed("search", "--format", "md", *asked).stdout.startswith(f"### 1. {place} ({day})\n")
        assert indexed("search", "--format", "files", *asked).stdout.splitlines() == [each["path"] for each in results]
        assert len(json.loads(indexed("search", "--json", "-n", "1", *asked).stdout)) == 1

    def test_a_query_after_two_dashes_may_begin_with_one(self, indexed):
        assert found(indexed("search", "--json", "--", "--bread")) == found(indexed("search", "--json", "bread"))
        assert "begins with -" not in indexed("list", "--forse").stderr

    def test_results_below_the_minimum_relevance_are_left_out(self, indexed):
        assert found(indexed("search", "--json", "--min-relevance", "0", "rye bread"))
        assert found(indexed("search", "--json", "--min-relevance", "1", "rye zeppelin")) == []

    def test_a_document_has_at_most_the_requested_number_of_results(self, indexed):
        paths = found(indexed("search", "--json", "--per-document", "1", "tokens bread"))
        assert paths
        assert len(set(paths)) == len(paths)

    def test_json_has_the_documented_fields(self, indexed):
        (result,) = json.loads(indexed("search", "bread", "--json").stdout)

        assert list(result) == [
            "content", "path", "start_line", "end_line", "heading", "score", "source", "created_at", "chunk_id",
            "chat_id", "context", "collection", "metadata", "similarity", "origin",
            "relevance", "also", "trust", "is_weak", "snippet",
        ]  # fmt: skip
        assert result["content"] == "# Tuesday\n\nBaked rye bread with buttermilk."
        assert result["snippet"] == "Baked rye bread with buttermilk."
        assert (result["path"], result["start_line"], result["end_line"]) == ("notes/2026-02-24.md", 1, 3)
        assert result["heading"] == ["Tuesday"]
        assert result["created_at"] == "2026-02-24T00:00:00Z"

    def test_the_snippet_in_json_equals_the_text_output_and_is_bounded(self, indexed, notes):
        (notes / "long.md").write_text(
            f"# Long\n\n{'Nothing of note happened here. ' * 30}\n\nThe zeppelin landed at noon.\n", "utf-8"
        )
        assert indexed("index").exit_code == 0
        (result,) = json.loads(indexed("search", "zeppelin", "--json").stdout)

        assert "The zeppelin landed at noon." in result["snippet"]
        assert len(result["snippet"]) <= 300 < len(result["content"])
        assert result["snippet"] in indexed("search", "zeppelin").stdout

    def test_explained_contributions_add_up_to_the_score(self, indexed):
        (result,) = json.loads(indexed("search", "bread", "--json", "--explain").stdout)
        text = indexed("search", "bread", "--explain").stdout

        (part,) = result["explain"]
        assert (part["component"], part["rank"]) == ("fts5", 1)
        assert part["value"] == pytest.approx(result["score"])
        assert f"+{part['value']:.4f}" in text
        assert f"={result['score']:.4f}" in text

    def test_an_empty_result_is_not_an_error(self, indexed):
        assert indexed("search", "zebra", "--json").stdout == "[]\n"
        text = indexed("search", "zebra")
        assert (text.exit_code, text.stdout, text.stderr) == (0, "", "klaw: nothing found\n")

    @pytest.mark.parametrize("option", ["-n", "--limit", "-k", "--top-k"])
    def test_limit_and_its_aliases(self, indexed, option):
        assert len(found(indexed("search", "bread tokens dawn", "--json"))) == 3
        assert len(found(indexed("search", "bread tokens dawn", "--json", option, "2"))) == 2

    def test_min_score_leaves_out_lower_scores(self, indexed):
        assert found(indexed("search", "bread", "--json", "--min-score", "0.01")) == ["notes/2026-02-24.md"]
        assert found(indexed("search", "bread", "--json", "--min-score", "0.9")) == []

    @pytest.mark.parametrize(
        ("arguments", "paths"),
        [
            (["--source", "auth.md"], ["notes/auth.md"]),
            (["--path", "notes/sub/"], ["notes/sub/tls.md"]),
            (["--until", "2026-02-24"], ["notes/2026-02-24.md"]),
            (["--until", "2026-02-23"], []),
            (["--since", "2026-02-24", "--until", "2026-02-24"], ["notes/2026-02-24.md"]),
            (["--chat", "telegram_1"], []),
            (["-c", "docs"], []),
            (["--collection", "docs"], []),
        ],
    )
    def test_filters_restrict_the_results(self, indexed, arguments, paths):
        assert found(indexed("search", "bread tokens dawn", "--json", *arguments)) == paths

    @pytest.mark.parametrize(
        ("conditions", "paths"),
        [
            (["tags=a"], ["notes/tagged.md"]),
            (["tags=a,c"], ["notes/other.md", "notes/tagged.md"]),
            (["tags!=a"], ["notes/2026-02-24.md", "notes/auth.md", "notes/other.md", "notes/sub/tls.md"]),
            (["status=open"], ["notes/tagged.md"]),
            (["tags=c", "status=open"], []),
            (["year>=2025"], ["notes/other.md"]),
        ],
    )
    def test_where_filters_by_the_front_matter_of_notes(self, indexed, user_home, conditions, paths):
        tagged = "---\ntags: [a, b]\nstatus: open\n---\n\nBread of the tagged note.\n"
        (user_home / "notes" / "tagged.md").write_text(tagged, "utf-8")
        other = "---\ntags: [c]\nstatus: done\nyear: 2025\n---\n\nBread of the other note.\n"
        (user_home / "notes" / "other.md").write_text(other, "utf-8")
        assert indexed("index").exit_code == 0

        where = [part for condition in conditions for part in ("--where", condition)]
        assert sorted(found(indexed("search", "bread tokens dawn", "--json", *where))) == paths

    def test_an_invalid_condition_is_named(self, indexed):
        result = indexed("search", "bread", "--where", "tags")

        assert result.exit_code == 1
        assert "'tags' is not a condition" in result.stderr

    @pytest.mark.parametrize("option", ["--source", "--path", "--chat"])
    def test_a_filter_with_invalid_text_is_named(self, indexed, option):
        result = indexed("search", "bread", option, "caf\udce9")  # a shell's bytes that are not UTF-8

        assert result.exit_code == 1
        assert r"is not text: 'caf\udce9' → give it in UTF-8" in result.stderr

    def test_a_collection_that_does_not_exist_is_named(self, indexed):
        result = indexed("search", "bread", "--collection", "elsewhere")

        assert (result.exit_code, result.stdout) == (1, "")
        assert "'elsewhere'" in result.stderr

    def test_since_accepts_relative_dates(self, indexed):
        new = {"notes/auth.md", "notes/sub/tls.md"}  # written just now; the third is dated by its name

        assert set(found(indexed("search", "bread tokens dawn", "--json", "--since", "2d"))) == new
        assert set(found(indexed("search", "bread tokens dawn", "--json", "--since", "yesterday"))) == new

    def test_an_invalid_date_is_a_usage_error(self, indexed):
        result = indexed("search", "x", "--since", "32.13.")

        assert result.exit_code == 2
        assert "write 2026-02-24" in result.stderr

    def test_each_mode_searches_by_words_or_by_vectors(self, indexed):
        assert found(indexed("search", "bread", "--json", "--mode", "fts")) == ["notes/2026-02-24.md"]
        vector = indexed("search", "bread", "--mode", "vector")
        assert vector.exit_code == 1
        assert vector.stderr.startswith("klaw: mode vector: no configured retriever uses vectors")

    def test_full_shows_whole_chunks(self, indexed, user_home):
        long = "# Long\n\n" + "\n\n".join(f"Paragraph {number} of the walrus saga." for number in range(40)) + "\n"
        (user_home / "notes" / "long.md").write_text(long, "utf-8")
        assert indexed("index").exit_code == 0

        assert "Paragraph 39" not in indexed("search", "long saga walrus").stdout
        assert "Paragraph 39" in indexed("search", "long saga walrus", "--full").stdout

    def test_markdown_quotes_the_chunks(self, indexed):
        text = indexed("search", "bread", "--format", "md", "--explain").stdout

        assert text.startswith("### 1. notes/2026-02-24.md:1-3 (0.")
        assert "\n> Baked rye bread with buttermilk.\n" in text
        assert "fts5 #1 (0." in text

    def test_csv_has_a_row_per_result(self, indexed):
        rows = list(csv.DictReader(io.StringIO(indexed("search", "bread", "--format", "csv").stdout)))

        assert [(row["rank"], row["path"], row["heading"]) for row in rows] == [("1", "notes/2026-02-24.md", "Tuesday")]
        assert (rows[0]["origin"], rows[0]["source"]) == ("notes", "2026-02-24.md")
        assert rows[0]["content"].replace("\r\n", "\n") == "# Tuesday\n\nBaked rye bread with buttermilk."

    def test_files_prints_each_path_once(self, indexed):
        assert indexed("search", "bread", "--format", "files").stdout == "notes/2026-02-24.md\n"

    def test_contradicting_formats_are_a_usage_error(self, indexed):
        assert indexed("search", "x", "--json", "--format", "json").exit_code == 0
        result = indexed("search", "x", "--json", "--format", "csv")
        assert result.exit_code == 2
        assert "cannot be used together" in result.stderr

    @pytest.mark.parametrize(
        "query", ["!!!", "-- ", "C++ (foo-bar) \"quote' NEAR/2 *", "\N{ZERO WIDTH SPACE}", "%_;DROP TABLE", "🦭"]
    )
    def test_every_text_is_a_valid_query(self, indexed, query):
        result = indexed("search", "--json", "--", query)

        assert result.exit_code == 0
        assert result.stderr == ""

    @pytest.mark.parametrize("query", ["", "  ", "\n"])
    def test_an_empty_query_names_an_example(self, indexed, query):
        result = indexed("search", query)

        assert (result.exit_code, result.stdout) == (1, "")
        assert "the query is empty" in result.stderr

    def test_a_query_of_a_megabyte_is_rejected_in_one_line(self, indexed):
        result = indexed("search", "-", stdin="seal " * 200_000)

        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.count("\n") == 1
        assert "1,000,000 characters" in result.stderr

    def test_the_query_may_come_from_stdin(self, indexed):
        assert found(indexed("search", "-", "--json", stdin="rye bread\n")) == ["notes/2026-02-24.md"]


class TestGet:
    @pytest.mark.parametrize(
        ("target", "text"),
        [
            ("notes/auth.md:5:1", "We decided to use OIDC, because tokens expire.\n"),
            ("notes/auth.md:5-6", "We decided to use OIDC, because tokens expire.\nNobody objected.\n"),
            ("notes/auth.md:6", "Nobody objected.\n"),
            ("notes/auth.md:6:500", "Nobody objected.\n"),
            ("notes/2026-02-24.md", "# Tuesday\n\nBaked rye bread with buttermilk.\n"),
        ],
    )
    def test_get_prints_lines(self, indexed, target, text):
        assert indexed("get", target).stdout == text

    def test_get_accepts_a_location_of_search(self, indexed):
        place = indexed("search", "bread").stdout.split()[1]

        assert "Baked rye bread" in indexed("get", place).stdout

    def test_get_prints_json_and_accepts_chunk_ids(self, indexed, user_home):
        (result,) = json.loads(indexed("search", "bread", "--json").stdout)
        passage = json.loads(indexed("get", result["chunk_id"], "--json").stdout)

        assert passage == {
            "path": "notes/2026-02-24.md",
            "content": "# Tuesday\n\nBaked rye bread with buttermilk.\n",
            "start_line": 1,
            "end_line": passage["end_line"],
            "file": str(user_home / "notes" / "2026-02-24.md"),
            "notice": "",
            "trust": "owner",
        }

    def test_a_search_covers_every_collection_that_is_not_separate(self, indexed, user_home):
        for name in ("work", "docs"):
            directory = user_home / f"of_{name}"
            directory.mkdir()
            (directory / "a.md").write_text(f"the lantern of {name}\n", "utf-8")
            indexed("index", str(directory), "-c", name)

        found = json.loads(indexed("search", "lantern", "--json").stdout)

        assert [result["collection"] for result in found] == ["work"]
        found = json.loads(indexed("search", "lantern", "--json", "-c", "docs", "-c", "memory").stdout)
        assert [result["collection"] for result in found] == ["docs"]
        indexed("config", "set", "memory.search.separate", '["work"]')
        assert json.loads(indexed("search", "lantern", "--json").stdout) == []

    def test_get_of_a_deleted_note_says_that_the_text_is_not_current(self, indexed, user_home):
        (user_home / "notes" / "2026-02-24.md").unlink()

        result = indexed("get", "notes/2026-02-24.md")

        assert "Baked rye bread" in result.stdout
        assert "when it was last indexed: its file cannot be found" in result.stderr
        assert "cannot be found" in json.loads(indexed("get", "notes/2026-02-24.md", "--json").stdout)["notice"]

    @pytest.mark.parametrize(
        ("target", "code", "words"),
        [
            ("notes/none.md", 1, "no indexed document has the path or id 'notes/none.md'"),
            ("notes/auth.md:99", 1, "asked for line 99"),
            ("notes/auth.md:0", 1, "line numbers count from 1, got 0\n"),
            ("notes/auth.md:1:0", 1, "the number of lines must be at least 1, got 0\n"),
            ("notes/auth.md:9-5", 2, "ends at line 5, before its first line 9"),
            ("", 2, "TARGET is empty"),
            ("notes/auth.md:abc", 2, "'abc' after notes/auth.md is not a line range"),
            ("notes/auth.md:", 2, "'' after notes/auth.md is not a line range"),
            ("notes/auth.md:5:x", 2, "'5:x' after notes/auth.md is not a line range"),
            ("notes/auth.md:5-", 2, "'5-' after notes/auth.md is not a line range"),
            ("notes/auth.md:" + "9" * 5000, 2, "is not a line range"),
            ("notes/none.md:abc", 1, "no indexed document has the path or id 'notes/none.md:abc'"),
            ("notes/none.md:5", 1, "no indexed document has the path or id 'notes/none.md'"),
        ],
    )
    def test_get_of_a_missing_path_is_an_error(self, indexed, target, code, words):
        result = indexed("get", target)

        assert (result.exit_code, result.stdout) == (code, "")
        assert words in result.stderr

    @pytest.mark.parametrize(
        ("option", "words"), [("--limit", "'x' is not a whole number"), ("--min-relevance", "'x' is not a number")]
    )
    def test_an_invalid_line_number_is_named(self, indexed, option, words):
        result = indexed("search", "gates", option, "x")

        assert result.exit_code == 2
        assert f"{words} →" in result.stderr

    def test_a_name_can_contain_a_colon(self, indexed, user_home):
        (user_home / "notes" / "10:30.md").write_text("Met the ferryman.\nHe was late.\n", "utf-8")
        (user_home / "notes" / "auth.md:6").mkdir()
        (user_home / "notes" / "auth.md:6" / "x:7.md").write_text("A colon.\n", "utf-8")
        assert indexed("index").exit_code == 0

        assert indexed("get", "notes/10:30.md").stdout == "Met the ferryman.\nHe was late.\n"
        assert indexed("get", "notes/10:30.md:2").stdout == "He was late.\n"
        assert indexed("get", "notes/auth.md:6/x:7.md").stdout == "A colon.\n"
        assert indexed("get", "notes/auth.md:6").stdout == "Nobody objected.\n"
        assert indexed("get", "notes/10:30.md:x").exit_code == 2

    def test_an_exact_name_takes_precedence_over_line_numbers(self, indexed, monkeypatch):
        path = indexed("save", "the boat is red").stdout.strip()

        assert indexed("get", f"{path}:1").stdout == "the boat is red\n"
        monkeypatch.setattr("klaw_core.memory.Memory.get", lambda _, *target: Excerpt(f"{target}", "", 1, 1))
        assert json.loads(indexed("get", "a:5", "--json").stdout)["path"] == "('a:5',)"


class TestSaveAndForget:
    def test_a_saved_text_is_found_at_once(self, klaw):
        path = klaw("save", "the boat", "is red").stdout.strip()

        assert path.startswith("saved/")
        assert found(klaw("search", "red boat", "--json")) == [path]

    def test_save_stores_source_chat_and_date(self, klaw):
        klaw("save", "-", "--source", "diary", "--chat", "telegram_7", "--date", "2024-05-06", stdin="saw an elk\n")

        (result,) = json.loads(klaw("search", "elk", "--json", "--chat", "telegram_7", "--source", "diary").stdout)
        assert result["created_at"] == "2024-05-06T00:00:00Z"
        assert result["content"].strip() == "saw an elk"

    def test_a_problem_of_embedding_a_memory_is_a_notice(self, klaw, monkeypatch):
        save = Memory.save

        def save_unembedded(memory, *text, **where):
            return attrs.evolve(save(memory, *text, **where), notice="it is kept, but not embedded yet")

        assert klaw("save", "the boat is green").stderr == ""
        monkeypatch.setattr("klaw_core.memory.Memory.save", save_unembedded)
        text, data, quiet = klaw("save", "a"), klaw("save", "b", "--json"), klaw("save", "c", "--quiet")

        assert text.exit_code == data.exit_code == quiet.exit_code == 0
        assert text.stdout.startswith("saved/")
        assert text.stderr == data.stderr == "klaw: it is kept, but not embedded yet\n"
        assert json.loads(data.stdout)["notice"] == "it is kept, but not embedded yet"
        assert quiet.stderr == ""

    def test_an_empty_memory_is_rejected(self, klaw):
        result = klaw("save", "  ")

        assert (result.exit_code, result.stderr) == (1, "klaw: nothing to save: the text is empty\n")

    def test_without_a_terminal_forget_needs_yes(self, indexed):
        result = indexed("forget", "notes/auth.md")

        assert result.exit_code == 2
        assert "pass --yes" in result.stderr
        assert found(indexed("search", "OIDC", "--json")) == ["notes/auth.md"]

    @pytest.mark.parametrize("yes", ["-y", "--yes"])
    def test_a_forgotten_note_is_excluded_and_its_file_is_kept(self, indexed, user_home, yes):
        result = indexed("forget", "notes/auth.md", yes)

        assert result.stdout == "forgot notes/auth.md (1 chunk)\n"
        assert indexed("index").exit_code == 0
        assert found(indexed("search", "OIDC", "--json")) == []
        assert (user_home / "notes" / "auth.md").exists()

    @pytest.mark.needs("klaw-conversations")
    def test_a_message_is_forgotten_without_a_count_of_chunks(self, indexed, user_home):
        place = user_home / "data" / "klaw" / "conversations" / "telegram_1"
        place.mkdir(parents=True, mode=0o700)
        line = {"id": "one", "ts": "2026-02-24T10:00:00Z", "role": "user", "content": "The key is blue."}
        (place / "2026-02-24.jsonl").write_text(f"{json.dumps(line)}\n", "utf-8")
        indexed("index")
        assert "conversations  1 document" in indexed("status").stdout
        assert indexed("forget", "telegram_1/one", "--yes").stdout == "forgot telegram_1/one\n"

    def test_a_whole_workspace_can_be_forgotten(self, indexed):
        result = indexed("forget", "notes/", "--yes", "--json")
        assert json.loads(result.stdout)["chunks"] == 3
        assert "its files stay; `klaw index /" in result.stderr
        assert indexed("forget", "notes/", "--yes").exit_code == 1

    def test_the_command_that_indexes_a_forgotten_workspace_again_makes_it_as_it_was(self, indexed, user_home):
        place, options = user_home / "manuals", ("--name", "other", "--collection", "docs", "--trust", "foreign")
        shutil.copytree(user_home / "notes", place)
        assert indexed("index", str(place), *options).exit_code == 0
        told = indexed("forget", "other/", "--yes").stderr
        _, *arguments = shlex.split(told.partition("its files stay; `")[2].partition("`")[0])
        assert arguments == ["index", str(place), *options]
        assert indexed(*arguments).exit_code == 0
        assert '"docs"' in indexed("search", "OIDC", "--collection", "docs", "--json").stdout

    @pytest.mark.parametrize("command", [("get", "notes"), ("forget", "notes", "--yes")])
    def test_a_workspace_without_a_slash_gets_a_hint(self, indexed, command):
        assert "notes is a whole workspace → search it with `klaw search --path notes/`" in indexed(*command).stderr

    def test_forget_of_a_missing_path_is_an_error(self, indexed):
        assert "no indexed document has the path or id 'elsewhere/'" in indexed("forget", "elsewhere/", "--yes").stderr


def test_main_runs_the_same_program(monkeypatch, capsys):
    from klaw_core.cli.startup import main

    monkeypatch.setattr(sys, "argv", ["klaw", "--version"])
    with pytest.raises(SystemExit) as exit_of:
        main()

    assert exit_of.value.code == 0
    assert capsys.readouterr().out.startswith("klaw ")
    assert cli.name == "cli"
