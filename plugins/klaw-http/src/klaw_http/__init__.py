"""The HTTP client that Klaw's remote plugins share. Importing this imports no HTTP library yet."""

from klaw_http.client import HttpClient
from klaw_http.errors import BodyError, HttpError, NoAnswerError, StatusError
from klaw_http.urls import http_url, is_loopback

__all__ = ["BodyError", "HttpClient", "HttpError", "NoAnswerError", "StatusError", "http_url", "is_loopback"]
