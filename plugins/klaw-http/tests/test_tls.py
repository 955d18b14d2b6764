"""Encrypted connections: certificates are verified, and the deadline holds during the handshake."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from klaw_http import HttpClient, NoAnswerError
from klaw_testing.doubles.wire import Wire

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Make a certificate for localhost, with its key in the same file."""
    key, path = tmp_path / "key.pem", tmp_path / "certificate.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(path)]
    subprocess.run(["openssl", "req", *kind, *name, *files], check=True, capture_output=True)
    path.write_text(key.read_text() + path.read_text())
    return path


@needs_openssl
def test_only_a_trusted_certificate_is_accepted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with HTTPServer(host="localhost", ssl_context=context) as server:
        server.expect_request("/x").respond_with_json({"fine": True})
        with pytest.raises(NoAnswerError, match="certificate verify failed"):
            HttpClient(server.url_for(""), retries=0).get("/x")
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert HttpClient(server.url_for("")).get("/x") == {"fine": True}


def test_a_handshake_without_an_answer_ends_at_the_deadline() -> None:
    with Wire() as wire, pytest.raises(NoAnswerError, match="did not finish"):
        HttpClient(wire.url.replace("http:", "https:"), deadline_seconds=0.4).get("/")
