"""`klaw export` and `klaw import`: to a file, through a pipe, and what they say."""

import json
import os
import stat


def test_an_export_to_a_file_can_be_imported(indexed, user_home):
    indexed("save", "The ferry leaves at seven.")
    indexed("core", "set", "user", "name", "Ada")
    result = indexed("export")
    assert result.exit_code == 0, result.output
    assert "exported 1 workspace, 1 fact of core memory, 1 saved memory to klaw-export.jsonl" in result.stderr
    assert result.stdout == ""
    other = str(user_home / "other")
    result = indexed("import", "--workspaces", "klaw-export.jsonl", "--data-dir", other)
    assert result.exit_code == 0, result.output
    assert result.stdout == "imported 1 workspace, 1 fact of core memory, 1 saved memory\n"
    assert result.stderr == "klaw: run `klaw index` to find the imported texts\n"
    assert "ferry" in indexed("search", "ferry", "--data-dir", other).stdout
    again = indexed("import", "--workspaces", "klaw-export.jsonl", "--data-dir", other)
    assert again.stdout == "imported nothing new; 3 already present\n"


def test_export_and_import_print_json(indexed, user_home):
    report = json.loads(indexed("export", "here.jsonl", "--json").stdout)
    assert report == {"file": "here.jsonl", "counts": {"workspace": 1}, "skipped": [], "notices": []}
    report = json.loads(
        indexed("import", "--workspaces", "here.jsonl", "--json", "--data-dir", str(user_home / "other")).stdout
    )
    assert report == {"added": {"workspace": 1}, "present": {}, "kept": [], "notices": [], "skipped": []}


def test_an_export_can_be_piped_to_an_import(indexed, spawn, user_home):
    indexed("save", "The ferry leaves at seven.")
    written = spawn("export", "-")
    assert written.returncode == 0, written.stderr
    assert written.stdout.splitlines()[-1] == '{"kind":"end","records":2}'
    taken = spawn(
        "import", "--workspaces", "-", stdin=written.stdout, environment={"KLAW_DATA_DIR": str(user_home / "other")}
    )
    assert taken.returncode == 0, taken.stderr
    assert taken.stdout == "imported 1 workspace, 1 saved memory\n"


def test_an_invalid_export_is_rejected(klaw, user_home):
    file = user_home / "work" / "other.jsonl"
    file.write_text("{}\n")
    result = klaw("import", str(file))
    assert result.exit_code == 1
    assert "is not a Klaw export: the first line is not a header like" in result.stderr
    assert "nothing was imported" in result.stderr
    assert klaw("import", "missing.jsonl").exit_code == 1


def test_an_invalid_export_through_a_pipe_is_named_without_the_copy_of_it(spawn):
    result = spawn("import", "-", stdin="")
    assert result.returncode == 1
    assert result.stderr.startswith("klaw: standard input is not a Klaw export: the file is empty")


def test_differing_records_are_named(klaw):
    klaw("core", "set", "user", "name", "Ada")
    klaw("export", "--quiet")
    klaw("core", "set", "user", "name", "Grace")
    result = klaw("import", "--workspaces", "klaw-export.jsonl")
    assert "not imported: core memory user.name already has another value" in result.stderr
    assert klaw("core", "get", "user", "name").stdout == "Grace\n"


def test_an_export_works_with_a_damaged_database(indexed, user_home):
    (user_home / "data" / "klaw" / "klaw.db").write_bytes(b"rubbish" * 1000)
    assert indexed("export").exit_code == 0
    assert os.stat("klaw-export.jsonl").st_mode & 0o777 == 0o600  # noqa: PTH116  # relative to the working directory


def test_a_missing_target_directory_is_not_created(klaw, user_home):
    result = klaw("export", "nowhere/deep/x.jsonl")
    assert result.exit_code == 1
    assert f"no such directory: {user_home / 'work' / 'nowhere' / 'deep'}" in result.stderr
    assert list((user_home / "work").iterdir()) == []


def test_an_empty_export_creates_no_data_directory(klaw, user_home):
    assert klaw("export").exit_code == 0
    assert not (user_home / "data").exists()


def test_the_export_of_another_program_is_counted_then_imported(klaw, tmp_path):
    file = tmp_path / "memories.json"
    file.write_text('{"results": [{"id": "1", "memory": "The ferry leaves at seven."}, {"id": "2"}]}')

    rehearsed = klaw("import", "--from", "mem0", str(file), "--dry-run")
    assert "would import 1 document" in rehearsed.stdout
    imported = klaw("import", "--from", "mem0", str(file))
    assert "imported 1 document" in imported.stdout
    assert "skipped memories.json, memory 2: it has no id or no text" in imported.stderr
    assert "klaw index" in imported.stderr
    assert "nothing new; 1 already present" in klaw("import", "--from", "mem0", str(file)).stdout

    unknown = klaw("import", "--from", "notion", str(file))
    assert unknown.exit_code == 1
    assert "no importer 'notion'" in unknown.stderr
    assert "install '" not in unknown.stderr, "nothing that could be installed has it"
    assert "klaw import --from mem0" in klaw("plugins").stdout


def test_the_command_carries_them_without_opening_the_database(klaw, user_home, tmp_path):
    data = user_home / "data"
    data.mkdir()
    (data / "klaw.db").write_bytes(b"not a database")
    (data / "mood.jsonl").write_text(
        "".join(f"{json.dumps(record)}\n" for record in ({"id": "b"}, {"id": "a", "why": [1, "я"]})), "utf-8"
    )
    (data / "mood_goals.json").write_text("- learn the accordion\n", "utf-8")
    (data / "mood_days" / "2026").mkdir(parents=True)
    (data / "mood_days" / "2026" / "02.jsonl").write_text(
        "".join(f"{json.dumps(line)}\n" for line in ({"at": 1}, {"at": 1})), "utf-8"
    )
    result = klaw("export", str(tmp_path / "export.jsonl"), "--data-dir", str(data))
    assert result.exit_code == 0, result.stderr
    assert "included the journal 'mood', which no installed extension owns" in result.stderr
    result = klaw("import", str(tmp_path / "export.jsonl"), "--data-dir", str(user_home / "other"))
    assert result.exit_code == 0, result.stderr
    assert "no installed extension owns the journal 'mood'" in result.stderr
    assert (user_home / "other" / "mood_goals.json").read_text("utf-8") == "- learn the accordion\n"
    assert stat.S_IMODE((user_home / "other" / "mood_goals.json").stat().st_mode) == 0o600
    klaw("export", str(tmp_path / "again.jsonl"), "--data-dir", str(user_home / "other"))
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "export.jsonl").read_bytes()
