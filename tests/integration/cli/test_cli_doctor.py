"""`klaw doctor` prints what it finds, and its exit status says whether an error remains."""

import json


def test_a_healthy_memory_exits_with_0(indexed):
    result = indexed("doctor")
    assert result.exit_code == 0, result.output
    assert result.stdout == "no problems found\n"
    assert json.loads(indexed("doctor", "--json").stdout) == {"healthy": True, "findings": []}
    assert indexed("doctor", "--quiet").stdout == ""


def test_an_error_is_shown_with_its_fix_and_fixed(indexed, user_home):
    (user_home / "data" / "klaw" / "klaw.db").chmod(0o644)
    found = indexed("doctor")
    assert found.exit_code == 1
    assert "error ~/data/klaw/klaw.db: other users can access it (mode 644)\n  → klaw doctor --fix\n" in found.stdout
    fixed = indexed("doctor", "--fix")
    assert fixed.exit_code == 0
    assert "fixed ~/data/klaw/klaw.db" in fixed.stdout
    assert "no problems found; " in fixed.stdout
    assert indexed("doctor").exit_code == 0


def test_a_warning_does_not_change_the_exit_status(indexed, notes):
    (notes / "auth.md").unlink()
    (notes / "sub" / "tls.md").unlink()
    result = indexed("doctor", "--verbose")
    assert result.exit_code == 0
    assert result.stdout.endswith("    notes/auth.md\n    notes/sub/tls.md\n1 warning\n")
    (finding,) = json.loads(indexed("doctor", "--json").stdout)["findings"]
    assert (finding["check"], finding["severity"], finding["hint"]) == ("ghosts", "warning", "klaw index")
    assert finding["items"] == ["notes/auth.md", "notes/sub/tls.md"]


def test_a_database_that_does_not_open_is_a_finding(indexed, user_home):
    (user_home / "data" / "klaw" / "klaw.db").write_bytes(b"nothing like a database" * 400)
    result = indexed("doctor")
    assert result.exit_code == 1
    assert "is not a valid SQLite database" in result.stdout
    assert "→ klaw reindex" in result.stdout


def test_an_invalid_configuration_is_an_error(klaw, user_home):
    (user_home / "config" / "klaw" / "config.toml").write_text("[memory]\nstor = 1\n")
    result = klaw("doctor")
    assert result.exit_code == 1
    assert "stor" in result.stderr
