"""``klaw sync`` from the command line: two data directories and a folder."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from klaw_core import Memory, StoreFullError
from klaw_core.cli.program import cli
from klaw_sync import Folder
from klaw_sync.background import Synchroniser


@pytest.fixture
def klaw(tmp_path, monkeypatch):
    """Return a function that runs ``klaw`` on a machine, and returns what it prints."""
    config = tmp_path / "config.toml"
    config.write_text('[memory.embedding]\ntype = "none"\n[extensions.sync]\nmachine = "desk"\n')
    monkeypatch.setenv("KLAW_CONFIG", str(config))
    monkeypatch.delenv("KLAW_SYNC_CODE", raising=False)

    def run(machine, *words, status=0, code=""):
        env = {"KLAW_SYNC_CODE": code} if code else {}
        result = CliRunner().invoke(cli, [*words, "--data-dir", str(tmp_path / machine)], env=env)
        assert result.exit_code == status, result.output
        return result.output if status else result.stdout

    return run


@pytest.fixture
def folder(tmp_path):
    return str(tmp_path / "folder")


@pytest.fixture
def joined(klaw, folder):
    """Two machines, of which the first had saved something."""
    klaw("one", "save", "the lantern is in the boathouse")
    code = json.loads(klaw("one", "sync", "init", folder, "--json"))["code"]
    klaw("one", "sync", folder)
    klaw("two", "sync", "join", folder, code=code)
    return code


def test_a_machine_that_joins_and_cannot_send_says_so(klaw, folder, joined, monkeypatch):
    def full(*_):
        raise StoreFullError("no space left")

    klaw("three", "save", "the oar is in the shed")
    monkeypatch.setattr(Folder, "put", full)
    said = klaw("three", "sync", "join", folder, code=joined, status=1)
    assert ("sent 0" in said, "no space left" in said) == (True, True)


@pytest.mark.usefixtures("joined")
class TestTwoMachines:
    def test_what_one_saves_the_other_finds(self, klaw):
        assert "the lantern is in the boathouse" in klaw("two", "search", "lantern")

    @pytest.mark.promise("Y15", "Y16")
    def test_what_one_forgets_the_other_forgets(self, klaw, folder, tmp_path):
        (path,) = json.loads(klaw("two", "search", "lantern", "--json"))
        klaw("two", "forget", path["path"], "--yes")
        for machine in ("two", "one", "two"):
            klaw(machine, "sync", folder)
        assert json.loads(klaw("one", "search", "lantern", "--json")) == []
        left = [file.name for file in sorted(tmp_path.rglob("*")) if file.is_file() and b"lantern" in file.read_bytes()]
        assert left == []

    def test_nothing_is_sent_twice(self, klaw, folder):
        assert klaw("two", "sync", folder) == "sent 0 · received 0 · forgot 0\n"

    @pytest.mark.promise("Y1")
    def test_a_dry_run_changes_nothing(self, klaw, folder, tmp_path):
        klaw("one", "save", "the kiln is warm")
        before = {file: file.read_bytes() for file in sorted((tmp_path / "folder").rglob("*")) if file.is_file()}
        assert klaw("one", "sync", "--dry-run", folder) == "would send 1 · would receive 0\n"
        assert {
            file: file.read_bytes() for file in sorted((tmp_path / "folder").rglob("*")) if file.is_file()
        } == before
        assert klaw("one", "sync", "run", folder) == "sent 1 · received 0 · forgot 0\n"

    @pytest.mark.promise("Y4", "Y13")
    def test_a_conflict_is_decided_and_shown(self, klaw, folder):
        klaw("one", "core", "set", "user", "name", "Ada")
        klaw("two", "core", "set", "user", "name", "Bob")
        for machine in ("one", "two", "one"):
            klaw(machine, "sync", folder)
        names = {json.loads(klaw(machine, "core", "get", "user", "name", "--json")) for machine in ("one", "two")}
        (conflict,) = json.loads(klaw("one", "sync", "conflicts", "--json"))
        assert len(names) == 1
        assert {conflict["text"], *names} == {"Ada", "Bob"}
        assert f"core_memory user.name  {conflict['version']}\n{conflict['text']}\n" in klaw("one", "sync", "conflicts")

    def test_the_other_machine_knows_who_wrote_a_key_of_core_memory_and_a_text(self, klaw, folder, tmp_path):
        klaw("one", "core", "set", "user", "name", "Ada")
        with Memory.open(data_dir=tmp_path / "one") as memory:
            memory.core.update("user", "diet", "hay", trust="agent")
            memory.call_tool("memory_save", {"content": "the agent saw the lantern"})
        for machine in ("one", "two", "one"):
            klaw(machine, "sync", folder)
        with Memory.open(data_dir=tmp_path / "one") as one, Memory.open(data_dir=tmp_path / "two") as two:
            assert two.core.classes() == one.core.classes() == {("user", "diet"): "agent"}
            assert {item.trust for item in two.search("lantern")} == {"owner", "agent"}
            two.core.update("user", "diet", "hay")
        for machine in ("two", "one"):
            klaw(machine, "sync", folder)
        with Memory.open(data_dir=tmp_path / "one") as one:
            assert one.core.classes() == {}

    def test_a_key_that_one_deletes_leaves_the_copies_of_a_broken_file_of_the_other(self, klaw, folder, tmp_path):
        klaw("one", "core", "set", "user", "name", "Zanzibarius")
        klaw("one", "core", "set", "user", "town", "Bern")
        for machine in ("one", "two", "one"):
            klaw(machine, "sync", folder)
        file = tmp_path / "two" / "core_memory.json"
        whole = file.read_bytes()
        file.write_bytes(whole[:-3])
        klaw("two", "core", "get", status=1)
        file.write_bytes(whole)
        assert (tmp_path / "two" / "core_memory.json.broken-1").exists()
        klaw("one", "core", "delete", "user", "name")
        for machine in ("one", "two", "one", "two"):
            klaw(machine, "sync", folder)
        assert json.loads(file.read_bytes())["user"] == {"town": "Bern"}
        left = [each for each in sorted(tmp_path.rglob("*")) if each.is_file() and b"Zanzibarius" in each.read_bytes()]
        assert left == []

    def test_what_is_missing_here_is_brought_back(self, klaw, folder, tmp_path):
        (journal,) = [file for file in (tmp_path / "one").rglob("*.jsonl") if b"lantern" in file.read_bytes()]
        journal.unlink()
        assert "1 record missing here (--missing)" in klaw("one", "sync", "run", folder)
        assert "missing" not in klaw("one", "sync", "run", "--missing", "restore", folder)
        assert b"lantern" in journal.read_bytes()

    def test_it_is_repeated_until_interrupted(self, klaw, folder, monkeypatch):
        runs = []

        def twice(self):
            runs.extend(self.run() for _ in range(2))
            raise KeyboardInterrupt

        monkeypatch.setattr(Synchroniser, "loop", twice)
        klaw("one", "save", "the kiln is warm")
        klaw("one", "sync", "run", "--again", folder, status=130)
        assert [run.sent for run in runs] == [1, 0]

    def test_status_names_the_machines(self, klaw):
        told = json.loads(klaw("two", "sync", "status", "--json"))
        assert [one["own"] for one in told["machines"]] == [True, False]
        assert {one["name"] for one in told["machines"]} == {"desk"}
        assert "this machine" in klaw("two", "sync", "status")

    def test_the_configured_folders_need_no_argument(self, klaw, folder, tmp_path):
        with (tmp_path / "config.toml").open("a") as file:
            file.write(f"remotes = {json.dumps([folder])}\n")
        klaw("one", "save", "the kiln is warm")
        assert klaw("one", "sync") == "sent 1 · received 0 · forgot 0\n"

    def test_a_memory_is_shared_and_joined_in_the_configured_folder(self, klaw, tmp_path):
        listed = [str(tmp_path / "first"), str(tmp_path / "second")]
        with (tmp_path / "config.toml").open("a") as config:
            config.write(f"remotes = {json.dumps(listed)}\n")
        code = klaw("three", "sync", "init").strip()
        klaw("three", "save", "the oar is in the shed")
        klaw("three", "sync")
        assert klaw("four", "sync", "join", code=code) == "sent 0 · received 1 · forgot 0\n"
        assert klaw("four", "sync", "status").startswith("memory ")

    def test_the_code_is_the_same_everywhere(self, klaw, joined):
        assert klaw("one", "sync", "code") == klaw("two", "sync", "code") == f"{joined}\n"

    @pytest.mark.promise("Y26")
    @pytest.mark.parametrize("encrypt", [True, False])
    def test_a_record_with_a_secret_is_in_no_readable_file(self, klaw, folder, tmp_path, encrypt):
        with (tmp_path / "config.toml").open("a") as file:
            file.write(f"encrypt = {str(encrypt).lower()}\n")
        token = f"ghp_{'a1B2' * 9}"
        klaw("one", "save", f"the token is {token}")
        klaw("one", "core", "set", "user", "password", "corehunter3")
        klaw("one", "save", "the kiln is warm")
        report = json.loads(klaw("one", "sync", folder, "--json"))
        assert report["withheld"] == (0 if encrypt else 2)
        klaw("two", "sync", folder)
        assert klaw("two", "search", "kiln") != ""
        arrived = b"".join(path.read_bytes() for path in sorted((tmp_path / "two").glob("*.json*")))
        assert [secret in arrived for secret in (token.encode(), b"corehunter3")] == [encrypt] * 2
        assert b"the kiln is warm" in arrived
        again = klaw("one", "sync", folder)
        assert again.startswith("sent 0"), "they do not wait in the count of what is sent"

    def test_files_are_readable_without_encryption(self, klaw, folder, tmp_path):
        with (tmp_path / "config.toml").open("a") as file:
            file.write('encrypt = false\njournals = ["saved", "conversations"]\n')
        klaw("one", "save", "the kiln is warm")
        klaw("one", "sync", folder)
        data = b"".join(file.read_bytes() for file in sorted((tmp_path / "folder").rglob("*.kseg")))
        assert b'"crypt":"none"' in data


class TestErrors:
    def test_ways_to_run_that_exclude_each_other(self, klaw, folder):
        assert "give only one of them" in klaw("one", "sync", "run", "--again", "--dry-run", folder, status=2)

    def test_a_memory_that_is_not_shared(self, klaw, folder):
        assert "klaw sync init DIR" in klaw("one", "sync", folder, status=1)

    def test_no_folder(self, klaw):
        assert "remotes" in klaw("one", "sync", status=1)

    @pytest.mark.promise("Y9")
    def test_a_folder_in_the_data_directory(self, klaw, tmp_path):
        assert "in each other" in klaw("one", "sync", "init", str(tmp_path / "one" / "folder"), status=1)

    def test_a_second_memory_in_one_folder(self, klaw, folder):
        klaw("one", "sync", "init", folder)
        assert "klaw sync join" in klaw("two", "sync", "init", folder, status=1)

    def test_another_code(self, klaw, folder, tmp_path):
        klaw("one", "sync", "init", folder)
        code = klaw("two", "sync", "init", str(tmp_path / "other"))
        said = klaw("three", "sync", "join", folder, code=code.split()[-1], status=1)
        assert "another memory" in said
        assert not (tmp_path / "three" / "sync" / "key").exists()

    @pytest.mark.parametrize("place", [-3, -1])
    def test_a_code_with_a_typing_error(self, klaw, folder, place):
        code = klaw("one", "sync", "init", folder).split()[-1]
        wrong = code[:place] + ("b" if code[place] == "a" else "a") + code[place % len(code) + 1 :]
        said = klaw("two", "sync", "join", folder, code=wrong, status=1)
        assert "not a join code" in said
        assert wrong not in said

    def test_no_code(self, klaw, folder):
        klaw("one", "sync", "init", folder)
        assert "KLAW_SYNC_CODE" in klaw("two", "sync", "join", folder, status=2)


@pytest.mark.usefixtures("joined")
class TestMachines:
    def test_one_is_removed(self, klaw, folder):
        for machine in ("two", "one"):
            klaw(machine, "sync", folder)
        klaw("two", "save", "the kiln is warm")
        klaw("two", "sync", folder)
        klaw("one", "sync", folder)
        (other,) = (each for each in json.loads(klaw("one", "sync", "status", "--json"))["machines"] if not each["own"])
        assert json.loads(klaw("one", "sync", "remove", other["id"], folder, "--json"))["id"] == other["id"]
        klaw("one", "sync", folder)
        assert "removed this one" in klaw("two", "sync", folder, status=1)
        assert ", removed" in klaw("one", "sync", "status")

    def test_one_that_has_not_noticed_that_it_was_removed_joins_again_at_once(self, klaw, folder, joined):
        own = {each["id"] for each in json.loads(klaw("two", "sync", "status", "--json"))["machines"] if each["own"]}
        klaw("two", "save", "the boat is green")
        klaw("two", "sync", folder)
        klaw("one", "sync", "remove", *own, folder)
        klaw("one", "sync", folder)
        klaw("two", "save", "the kiln is warm")
        assert "sent 1" in klaw("two", "sync", "join", folder, code=joined)
        klaw("one", "sync", folder)
        assert "the kiln is warm" in klaw("one", "search", "kiln")

    def test_what_a_removed_one_had_written_is_found_here(self, klaw, folder):
        klaw("two", "save", "the kiln is warm")
        klaw("two", "sync", folder)
        own = {each["id"] for each in json.loads(klaw("two", "sync", "status", "--json"))["machines"] if each["own"]}
        klaw("one", "sync", "remove", *own, folder)
        assert "the kiln is warm" in klaw("one", "search", "kiln")

    def test_none_is_removed_without_a_place_to_synchronise_with(self, klaw):
        assert "no place" in klaw("one", "sync", "remove", "desk", status=1)

    def test_a_repository_that_is_not_there_does_not_hide_what_is_wrong_with_a_folder(self, klaw, folder, tmp_path):
        (file,) = (tmp_path / "folder").rglob("*.kseg")
        file.write_bytes(file.read_bytes()[:-1])
        nowhere = str(tmp_path / "nowhere.git")
        found = json.loads(klaw("one", "sync", "doctor", nowhere, folder, "--json", status=1))
        assert [each["place"] for each in found] == [nowhere, folder]

    def test_the_folders_are_examined(self, klaw, folder, tmp_path):
        assert klaw("one", "sync", "doctor", folder, "-q") == ""
        (file,) = (tmp_path / "folder").rglob("*.kseg")
        file.write_bytes(file.read_bytes()[:-1])
        (found,) = json.loads(klaw("one", "sync", "doctor", folder, "--json", status=1))
        assert found["place"] == folder
        assert file.name in found["problem"]


@pytest.mark.usefixtures("joined")
def test_a_machine_that_is_removed_with_a_new_key_reads_nothing_new(klaw, folder):
    klaw("two", "save", "the harbour is closed")
    for machine in ("two", "one"):
        klaw(machine, "sync", folder)
    old = klaw("one", "sync", "code").strip()
    name = next(machine["id"] for machine in json.loads(klaw("one", "sync", "status", "--json"))["machines"][1:])
    klaw("one", "sync", "remove", name, folder, "--new-key")
    new = klaw("one", "sync", "code").strip()
    assert new.startswith(old[:70])
    assert new != old
    klaw("one", "save", "the kiln is warm")
    klaw("one", "sync", folder)
    assert klaw("two", "sync", folder).startswith("sent 0 · received 0")
    assert json.loads(klaw("two", "search", "kiln", "--json")) == []
    klaw("three", "sync", "join", folder, code=new)
    assert "the kiln is warm" in klaw("three", "search", "kiln")


@pytest.fixture
def notes(klaw, joined, tmp_path):
    """Each machine has a copy of two notes in a shared workspace."""
    for machine in ("one", "two"):
        directory = tmp_path / f"{machine}-notes"
        directory.mkdir()
        for name in ("reef", "quay"):
            (directory / f"{name}.md").write_text(f"# {name}\n\nThe buoy of the {name} is {name}xylophone.\n")
        klaw(machine, "index", str(directory), "--name", "notes")
    return joined


class TestSharedWorkspaces:
    @pytest.fixture
    def sync(self, klaw, folder):
        """Synchronise machines, in this order."""
        return lambda *machines: [klaw(machine, "sync", folder) for machine in machines]

    def paths(self, klaw, machine):
        return {row["path"] for row in json.loads(klaw(machine, "search", "buoy", "--json"))}

    @pytest.mark.promise("Y12")
    @pytest.mark.usefixtures("notes")
    def test_a_note_that_is_forgotten_on_one_machine_is_forgotten_on_all(self, klaw, sync, tmp_path):
        for machine in ("one", "two"):
            klaw(machine, "workspace", "share", "notes")
            sync(machine)
        klaw("one", "forget", "notes/reef.md", "--yes")
        klaw("two", "workspace", "exclude", "notes", "drafts/*")
        sync("one", "two", "one")
        assert [self.paths(klaw, machine) for machine in ("one", "two")] == [{"notes/quay.md"}] * 2
        files = [path for each in ("one", "two") for path in sorted((tmp_path / each).rglob("*")) if path.is_file()]
        assert [path for path in files if b"reefxylophone" in path.read_bytes()] == []
        excluded = [set(json.loads(klaw(each, "workspace", "exclude", "notes", "--json"))) for each in ("one", "two")]
        assert excluded == [{"reef.md", "drafts/*"}] * 2
        klaw("two", "restore", "notes/reef.md")
        sync("two", "one")
        assert self.paths(klaw, "one") == {"notes/quay.md", "notes/reef.md"}

    @pytest.mark.usefixtures("notes")
    def test_what_was_forgotten_stays_forgotten_after_the_workspace_was_added_again_elsewhere(
        self, klaw, sync, tmp_path
    ):
        for machine in ("one", "two"):
            klaw(machine, "workspace", "share", "notes")
            sync(machine)
        klaw("one", "forget", "notes/reef.md", "--yes")
        sync("one", "two")
        klaw("two", "workspace", "remove", "notes", "--yes")
        klaw("two", "index", str(tmp_path / "two-notes"), "--name", "notes")
        sync("two", "one")
        assert self.paths(klaw, "one") == {"notes/quay.md"}
        assert "shared elsewhere" in klaw("two", "sync", "status")
        klaw("two", "workspace", "share", "notes")
        assert self.paths(klaw, "two") == {"notes/quay.md"}

    @pytest.mark.usefixtures("notes")
    def test_a_damaged_list_of_workspaces_is_a_problem_and_all_else_is_synchronised(self, klaw, sync, folder, tmp_path):
        for machine in ("one", "two"):
            klaw(machine, "workspace", "share", "notes")
            sync(machine)
        klaw("one", "save", "the harbour is closed")
        sync("one")
        (tmp_path / "two" / "workspaces.json").write_text("{broken")
        told = klaw("two", "sync", folder, status=1)
        assert "not a valid list of workspaces" in told
        assert "klaw index DIR" in told
        assert "harbour" in (tmp_path / "two" / "saved.jsonl").read_text()

    @pytest.mark.usefixtures("notes")
    def test_a_missing_directory_is_a_problem_of_the_run_and_what_was_forgotten_is_forgotten(
        self, klaw, sync, folder, tmp_path
    ):
        for machine in ("one", "two"):
            klaw(machine, "workspace", "share", "notes")
            sync(machine)
        klaw("one", "forget", "notes/reef.md", "--yes")
        sync("one")
        (tmp_path / "two-notes").rename(tmp_path / "away")
        assert "does not exist" in klaw("two", "sync", folder, status=1)
        assert self.paths(klaw, "two") == {"notes/quay.md"}
        (tmp_path / "away").rename(tmp_path / "two-notes")
        sync("two")
        assert self.paths(klaw, "two") == {"notes/quay.md"}

    @pytest.mark.usefixtures("notes")
    def test_a_private_workspace_is_left_alone(self, klaw, sync, tmp_path):
        klaw("one", "workspace", "share", "notes")
        klaw("one", "forget", "notes/reef.md", "--yes")
        sync("one", "two")
        assert self.paths(klaw, "two") == {"notes/quay.md", "notes/reef.md"}
        shown = json.loads(klaw("two", "sync", "status", "--json"))
        assert (shown["workspaces"], shown["private_workspaces"]) == ([{"name": "notes", "here": False}], 1)
        assert "shared elsewhere" in klaw("two", "sync", "status")
        assert "here" not in (tmp_path / "two" / "workspaces.json").read_text()
        shown = json.loads(klaw("one", "sync", "status", "--json"))
        assert (shown["workspaces"], shown["private_workspaces"]) == ([{"name": "notes", "here": True}], 0)

    @pytest.mark.usefixtures("notes")
    def test_a_shared_workspace_keeps_its_name_until_it_is_private_everywhere(self, klaw, sync):
        for machine in ("one", "two"):
            klaw(machine, "workspace", "share", "notes")
            sync(machine)
        assert "workspace unshare notes" in klaw("two", "workspace", "rename", "notes", "x", status=1)
        klaw("one", "workspace", "unshare", "notes")
        sync("one", "two")
        assert json.loads(klaw("two", "sync", "status", "--json"))["workspaces"] == []
        klaw("two", "workspace", "rename", "notes", "x")

    @pytest.mark.promise("Y11")
    @pytest.mark.usefixtures("notes")
    def test_nothing_of_a_workspace_that_nobody_shared_travels(self, klaw, sync, tmp_path):
        klaw("one", "forget", "notes/reef.md", "--yes")
        assert sync("one") == ["sent 0 · received 0 · forgot 0\n"]
        assert not (tmp_path / "one" / "workspaces.jsonl").exists()


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
def test_something_else_in_the_place_of_a_segment_is_told(klaw, folder, tmp_path, joined, kind):
    (file,) = (tmp_path / "folder").rglob("*.kseg")
    file.unlink()
    if kind == "link":
        file.symlink_to("/etc/passwd")
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        file.mkdir()
    told = f"{file.parent.name}/{file.name}: it is a link or another special file"
    (found,) = json.loads(klaw("two", "sync", "doctor", folder, "--json", status=1))
    assert found["problem"].startswith(told)
    report = json.loads(klaw("three", "sync", "join", folder, "--json", code=joined))
    assert [each.startswith(f"{folder}/{told}") for each in report["waiting"]] == [True]


@pytest.mark.usefixtures("joined")
def test_a_link_in_the_place_of_a_machines_directory_is_told(klaw, folder, tmp_path):
    (file,) = (tmp_path / "folder").rglob("*.kseg")
    file.parent.rename(tmp_path / "elsewhere")
    file.parent.symlink_to(tmp_path / "elsewhere")
    (found,) = json.loads(klaw("two", "sync", "doctor", folder, "--json", status=1))
    assert found["problem"].startswith(f"{file.parent.name}: it is a link")


@pytest.mark.usefixtures("joined")
class TestAFileIsMissing:
    @pytest.fixture
    def files(self, klaw, folder, tmp_path):
        for text in ("the kiln is warm", "the ferry is late", "the barn is red"):
            klaw("one", "save", text)
            klaw("one", "sync", folder)
        return sorted((tmp_path / "folder").rglob("*.kseg"))

    @pytest.mark.promise("Y36", "Y37")
    def test_doctor_the_receiver_and_status_tell_it(self, klaw, folder, files, joined):
        lost = files[1].read_bytes()
        files[1].unlink()
        (found,) = json.loads(klaw("two", "sync", "doctor", folder, "--json", status=1))
        assert found["problem"].startswith("1 record of ")
        assert found["problem"].endswith(" not arrived: a file is missing, or is still on its way")
        report = json.loads(klaw("three", "sync", "join", folder, "--json", code=joined))
        assert (report["received"], report["gaps"]) == (3, [found["problem"]])
        assert json.loads(klaw("three", "sync", folder, "--json"))["gaps"] == report["gaps"], "also by an idle run"
        assert json.loads(klaw("three", "sync", "status", "--json"))["gaps"] == report["gaps"]
        files[1].write_bytes(lost)
        assert json.loads(klaw("three", "sync", folder, "--json"))["gaps"] == []
        assert json.loads(klaw("two", "sync", "doctor", folder, "--json")) == []

    def test_the_machine_that_wrote_it_writes_it_again(self, klaw, folder, files):
        files[1].unlink()
        klaw("one", "sync", folder)
        assert json.loads(klaw("two", "sync", "doctor", folder, "--json")) == []

    def test_files_that_were_packed_together_are_not_missing(self, klaw, folder, files, joined, tmp_path):
        (path,) = json.loads(klaw("one", "search", "ferry", "--json"))
        klaw("one", "forget", path["path"], "--yes")
        other = str(tmp_path / "other")  # a second place takes numbers of segments, too
        for _ in range(2):
            klaw("one", "sync", folder, other)
        assert files[2] not in (tmp_path / "folder").rglob("*.kseg")
        assert json.loads(klaw("two", "sync", "doctor", folder, other, "--json")) == []
        assert json.loads(klaw("three", "sync", "join", folder, "--json", code=joined))["gaps"] == []
