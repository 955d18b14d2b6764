"""A part that cannot work costs what needs it, and no more: a misspelt embedder, a variable that is not set."""

import json

import pytest

from klaw_core import StoreReadOnlyError
from klaw_core.files import atomic

TYPO = """\
[memory.embedding]
type = "olama"
"""

UNSET = """\
[memory.embedding]
type = "none"

[[memory.retrieval]]
type = "fts5"

[[memory.reranking]]
type = "http"
url = "http://127.0.0.1:9/rerank"
model = "r"
api_key = "${KLAW_TEST_KEY}"
"""


@pytest.fixture
def configure(user_home):
    return (user_home / "config" / "klaw" / "config.toml").write_text


def test_with_a_misspelt_embedder_words_status_and_doctor_still_work(indexed, configure):
    configure(TYPO)
    for arguments in (["search", "tokens expire"], ["search", "--mode", "fts", "tokens"], ["get", "notes/auth.md"]):
        result = indexed(*arguments)
        assert result.exit_code == 0, arguments
        assert "tokens" in result.stdout.lower()
    problems = json.loads(indexed("status", "--json").stdout)["problems"]
    assert any("did you mean 'ollama'?" in problem for problem in problems)
    examined = indexed("doctor")
    assert "no plugin provides the embedder 'olama'" in examined.stdout
    assert indexed("save", "The ferry leaves at seven.").exit_code == 0
    assert indexed("forget", "--yes", "notes/auth.md").exit_code == 0


def test_a_search_of_what_no_embedder_has_embedded_names_the_missing_one(klaw, user_home, configure):
    (user_home / "work" / "boat.md").write_text("The boat leaves at noon.\n")
    configure(TYPO)
    assert klaw("index", ".").exit_code == 0
    result = klaw("search", "boat")
    assert "no plugin provides the embedder 'olama'" in result.stderr
    assert "klaw embed" not in result.stderr
    assert "boat.md" in result.stdout


def test_a_saved_memory_is_of_no_chat_that_other_commands_refuse(klaw):
    refused = [klaw(*arguments) for arguments in (["save", "x", "--chat", "nochat"], ["logs", "--chat", "nochat"])]
    assert [each.exit_code for each in refused] == [1, 1]
    assert len({each.stderr for each in refused}) == 1
    assert "'nochat' is not a chat name" in refused[0].stderr


def test_an_unset_variable_disables_only_its_stage(indexed, configure):
    configure(UNSET)
    result = indexed("search", "tokens expire")
    assert (result.exit_code, "notes/auth.md" in result.stdout) == (0, True)
    assert (
        "not reranked by http: memory.reranking[0].api_key: the environment has no variable KLAW_TEST_KEY"
        in result.stderr
    )
    assert any("KLAW_TEST_KEY" in problem for problem in json.loads(indexed("status", "--json").stdout)["problems"])
    assert "KLAW_TEST_KEY" in indexed("doctor").stdout
    assert "KLAW_TEST_KEY" in indexed("init").stdout


def test_all_problems_are_reported_at_once_with_missing_plugins(indexed, configure):
    configure(TYPO + '[memory.fusion]\nkk = 3\n[[memory.retrieval]]\ntype = "sqlite-vek"\n[memory.store]\nx = 1\n')
    error = indexed("search", "tokens").stderr
    for problem in ("'olama'", "memory.fusion.kk: unknown key", "'sqlite-vek'", "memory.store.x: unknown key"):
        assert problem in error
    configure("nonsense = 1\n" + TYPO + '[[memory.retrieval]]\ntype = "sqlite-vek"\n')
    error = indexed("search", "tokens").stderr
    for problem in ("unknown key nonsense", "'olama'", "'sqlite-vek'"):
        assert problem in error


class TestUnset:
    def test_unset_removes_a_setting_or_a_table_and_rejects_a_missing_key(self, klaw, configure):
        configure("# mine\n[memory.fusion]\nk = 30  # k\npool = 9\n\n[memory.embedding]\ntype = 'none'\n")
        assert klaw("config", "unset", "memory.fusion.k").exit_code == 0
        assert klaw("config", "get", "memory.fusion.k").stdout == "60\n"
        assert klaw("config", "get", "memory.fusion.pool").stdout == "9\n"
        assert klaw("config", "unset", "memory.fusion").exit_code == 0
        assert klaw("config", "get", "memory.fusion.pool").stdout == "50\n"
        again = klaw("config", "unset", "memory.fusion", "--json")
        assert (again.exit_code, json.loads(again.stdout)["removed"]) == (0, False)
        assert klaw("config", "get", "memory.embedding.type").stdout == "none\n"

    def test_unset_removes_a_misspelt_embedder(self, klaw, configure):
        configure(TYPO)
        assert klaw("config", "unset", "memory.embedding.type").exit_code == 0
        assert klaw("config", "get", "memory.embedding.type").stdout == "onnx\n"

    def test_unset_writes_no_invalid_configuration(self, klaw, configure, user_home):
        text = '[[memory.retrieval]]\ntype = "fts5"\n'
        configure(text)
        refused = klaw("config", "unset", "memory.retrieval[0].type")
        assert (refused.exit_code, "nothing was changed" in refused.stderr) == (1, True)
        assert (user_home / "config" / "klaw" / "config.toml").read_text() == text
        assert klaw("config", "unset", "not a place").exit_code == 1


class TestSet:
    def test_a_name_close_to_a_known_one_is_rejected(self, klaw, user_home):
        before = (user_home / "config" / "klaw" / "config.toml").read_text()
        refused = klaw("config", "set", "memory.embedding.type", "olama")
        assert (refused.exit_code, "did you mean 'ollama'?" in refused.stderr) == (1, True)
        assert (user_home / "config" / "klaw" / "config.toml").read_text() == before

    def test_a_name_unlike_any_known_one_is_written_with_a_notice(self, klaw):
        result = klaw("config", "set", "memory.embedding.type", "zebra-9000")
        assert (result.exit_code, "no plugin provides" in result.stderr) == (0, True)


class TestProjectMemory:
    def test_it_is_private_and_found_from_a_subdirectory(self, klaw, user_home, monkeypatch):
        project = user_home / "project"
        (project / "sub").mkdir(parents=True)
        (project / "plan.md").write_text("# Plan\n\nThe lantern is green.\n", "utf-8")
        monkeypatch.chdir(project)
        made = klaw("init", "--here")
        assert (made.exit_code, made.stdout.splitlines()[-1]) == (0, "next: klaw index .")
        assert (project / ".klaw").stat().st_mode & 0o777 == 0o700
        assert (project / ".klaw" / ".gitignore").read_text().endswith("*\n")
        assert klaw("index", ".").exit_code == 0
        assert (project / ".klaw" / "klaw.db").is_file()
        monkeypatch.chdir(project / "sub")
        assert "project/plan.md" in klaw("search", "lantern").stdout
        assert klaw("init", "--here", "--data-dir", "x").exit_code == 2
        monkeypatch.chdir(user_home)
        assert klaw("search", "lantern").stdout == ""

    def test_one_of_a_clone_is_used_once_it_is_accepted(self, klaw, user_home, monkeypatch):
        clone = user_home / "clone"
        (clone / ".klaw").mkdir(parents=True)
        (clone / ".klaw" / "core_memory.json").write_text('{"user": {"name": "Mallory"}, "agent": {}}')
        monkeypatch.chdir(clone)
        before = klaw("core", "get")
        assert "Mallory" not in before.stdout
        assert "is not used" in before.stderr
        assert klaw("init", "--here").exit_code == 0
        assert "Mallory" in klaw("core", "get").stdout

    def test_what_cannot_be_made_is_not_listed(self, klaw, user_home, monkeypatch):
        make = atomic.make_private_directory

        def refuse(path):
            if path.name == ".klaw":
                raise StoreReadOnlyError(f"{path} cannot be created")
            make(path)

        (user_home / "project").mkdir()
        monkeypatch.chdir(user_home / "project")
        before = (user_home / "config" / "klaw" / "config.toml").read_bytes()
        monkeypatch.setattr(atomic, "make_private_directory", refuse)
        assert klaw("init", "--here").exit_code == 1
        assert (user_home / "config" / "klaw" / "config.toml").read_bytes() == before

    def test_a_link_is_rejected(self, klaw, user_home, monkeypatch):
        (user_home / "elsewhere").mkdir()
        project = user_home / "project"
        project.mkdir()
        (project / ".klaw").symlink_to(user_home / "elsewhere")
        monkeypatch.chdir(project)
        assert "is not a directory" in klaw("init", "--here").stderr
        assert not list((user_home / "elsewhere").iterdir())
