"""A server of one page, for the browser of this machine and nothing else."""

from __future__ import annotations

import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any

LOOPBACK = "127.0.0.1"
NAMES = (LOOPBACK, "localhost")
"""Names by which the browser may ask. A page elsewhere whose name was turned to this address has another."""

MOST_AT_ONCE = 16
"""Connections that are answered at once; further ones are closed unread. Browsers open up to six."""

SECONDS = 5.0
"""How long a connection may stay silent."""


class PageServer(ThreadingTCPServer):
    """Serve one page from the loopback. It looks up no name, as `http.server.HTTPServer` does.

    Parameters
    ----------
    page : str
        The HTML.
    port : int
        The port; 0 takes a free one.
    """

    daemon_threads = True
    request_queue_size = 64
    allow_reuse_address = sys.platform != "win32"  # there it would let another program take the port

    def __init__(self, page: str, port: int = 0):
        self.body = page.encode("utf-8")
        self.free = threading.BoundedSemaphore(MOST_AT_ONCE)
        super().__init__((LOOPBACK, port), PageHandler)
        shown = "" if self.port == 80 else f":{self.port}"
        self.origins = {f"http://{name}{shown}" for name in NAMES}

    @property
    def port(self) -> int:
        """The port that it has."""
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.port}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if not too many are busy."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer one connection, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""


class PageHandler(BaseHTTPRequestHandler):
    """Answer GET and HEAD of the page, one request a connection; refuse all else without reading it."""

    server: PageServer
    timeout = SECONDS
    server_version, sys_version = "riskbayes", ""
    error_message_format, error_content_type = "%(code)d %(message)s\n", "text/plain; charset=utf-8"

    def do_GET(self) -> None:
        """Send the page."""
        refusal = self.refusal()
        if refusal is not None:
            self.send_error(refusal)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(self.server.body)

    do_HEAD = do_GET

    def refusal(self) -> HTTPStatus | None:
        """Return why a request is refused: a body, another host, another site that asks, another path."""
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        hosts = self.headers.get_all("Host", [])
        if len(hosts) != 1 or f"http://{hosts[0].lower()}" not in self.server.origins:
            return HTTPStatus.MISDIRECTED_REQUEST
        if any(origin not in self.server.origins for origin in self.headers.get_all("Origin", [])):
            return HTTPStatus.FORBIDDEN
        return None if self.path == "/" else HTTPStatus.NOT_FOUND

    def end_headers(self) -> None:
        """End the header with what keeps other sites from using the page, also after errors."""
        for name, value in (
            ("Content-Security-Policy", "frame-ancestors 'none'"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a request could write to the terminal."""
