"""Klaw's directories: where platformdirs says they are."""

import platformdirs
import pytest

from klaw_core.config.places import user_directory

_ASKED = {
    "config": platformdirs.user_config_path,
    "data": platformdirs.user_data_path,
    "cache": platformdirs.user_cache_path,
}


@pytest.mark.parametrize("kind", _ASKED)
@pytest.mark.parametrize("home", ["/home/ann", "/home/ann/", "/", "relative", "", None])
@pytest.mark.parametrize("base", ["/srv/xdg", "/srv/xdg/", "relative", "", None])
def test_directories_are_those_of_platformdirs(
    kind: str, home: str | None, base: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("HOME", home), (f"XDG_{kind.upper()}_HOME", base)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert user_directory(kind) == _ASKED[kind]("klaw")  # type: ignore[arg-type]  # the three kinds
