"""The HTTP client that Klaw's remote plugins share. Importing this imports no HTTP library yet."""

from klaw_http.client import HttpClient
from klaw_http.deadline import SECONDS
from klaw_http.errors import BodyError, HttpError, NoAnswerError, StatusError
from klaw_http.options import RemoteOptions, require_network
from klaw_http.urls import http_url, http_url_from, is_loopback, server_name

__all__ = [
    "SECONDS",
    "BodyError",
    "HttpClient",
    "HttpError",
    "NoAnswerError",
    "RemoteOptions",
    "StatusError",
    "http_url",
    "http_url_from",
    "is_loopback",
    "require_network",
    "server_name",
]
