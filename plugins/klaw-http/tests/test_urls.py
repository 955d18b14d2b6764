"""Which base URLs are taken, and that importing the library stays cheap."""

from __future__ import annotations

import subprocess
import sys

import pytest
from attrs import field, frozen

from klaw_http import HttpClient, http_url_from, is_loopback, server_name


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434",
        "https://api.openai.com/v1",
        "http://[::1]:8080/x/",
        "http://10.0.0.7",
        "http://gpu_box",
        "http://xn--e1afmkfd.example",
    ],
)
def test_valid_server_addresses_are_accepted(url: str) -> None:
    assert HttpClient(url).base_url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:11434",
        "ftp://host",
        "file:///etc/passwd",
        "http://",
        "http://host:0",
        "http://host:99999",
        "http://host:port",
        "http://[::1",
        "http://[v1.a]",
        "http://[10.0.0.7]",
        "http://xn--a",
        "http://a%41",
        "http://host/ path",
        "http://host\n.evil",
        "http://хост",
        "http://" + "a" * 64 + ".example",
        "http://host?key=secret",
        "http://host#x",
    ],
)
def test_an_invalid_address_is_rejected_with_its_field(url: str) -> None:
    with pytest.raises(ValueError, match=r"^base_url: "):
        HttpClient(url)


def test_an_invalid_address_of_the_environment_is_rejected_with_its_variable() -> None:
    @frozen
    class Options:
        url: str = field(factory=lambda: "ftp://host", validator=http_url_from("HOST", lambda: "ftp://host"))

    with pytest.raises(ValueError, match=r"^HOST: 'ftp://host' does not start"):
        Options()
    with pytest.raises(ValueError, match=r"^url: 'ftp://other' does not start"):
        Options("ftp://other")
    assert Options("http://host").url == "http://host"


@pytest.mark.parametrize("url", ["http://me:hunter2@host", "http://me:hun:ter2@host:x", "https://hunter2@host"])
def test_credentials_are_rejected_and_not_shown(url: str) -> None:
    with pytest.raises(ValueError, match="base_url") as caught:
        HttpClient(url)
    assert "hunter2" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:11434", True),
        ("http://LOCALHOST", True),
        ("http://127.8.0.1", True),
        ("http://[::1]:1", True),
        ("http://ollama.localhost", True),
        ("http://10.0.0.7", False),
        ("http://localhost.example.com", False),
        ("http://0.0.0.0", False),
    ],
)
def test_loopback_addresses_are_recognised(url: str, here: bool) -> None:  # noqa: FBT001  # a parametrised value
    assert is_loopback(url) is here


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.openai.com/v1", "api.openai.com/v1"),
        ("https://API.OpenAI.com/v1/", "api.openai.com/v1"),
        ("http://localhost:8080", "localhost:8080"),
        ("http://[::1]:1/A/", "[::1]:1/A"),
    ],
)
def test_the_name_of_a_server_is_unique(url: str, name: str) -> None:
    assert server_name(url) == name


def test_importing_the_library_imports_no_http_library() -> None:
    heavy = "{'httpx2', 'httpcore2', 'h11', 'anyio', 'ssl', 'asyncio', 'numpy'}"
    code = f"import sys, klaw_http; print(sorted({heavy} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.strip() == "[]"
