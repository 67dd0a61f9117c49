"""A small web application: a server with sessions, a log-in, a basket, a dialog, and a payment that fails now and then.

The failures follow a list of random numbers, so that a test always ends alike.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

HEAD = '<!doctype html><title>Bakery</title><h1>{}</h1><a href="https://example.org/">Elsewhere</a>'
ASK = (
    "<dialog id=ask aria-label='Really?'><a href='/thanks'>Yes</a><button onclick='ask.close()'>No</button></dialog>"
    "<button onclick='ask.showModal()'>Pay</button><button disabled>Pay twice</button><a href='/'>Home</a>"
)


class Bakery(BaseHTTPRequestHandler):
    """What a visitor sees depends on the cookie."""

    protocol_version = "HTTP/1.1"
    baskets: dict[str, int] = {}  # noqa: RUF012
    noise = random.Random(0)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        cookie = self.headers.get("Cookie", "").partition("session=")[2] or uuid4().hex
        page = self.page(parts.path, parse_qs(parts.query), cookie).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", f"session={cookie}; Path=/")
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def page(self, path: str, query: dict[str, list[str]], session: str) -> str:
        if path == "/basket":
            self.baskets[session] = self.baskets.get(session, 0) + len(query.get("add", []))
            full = self.baskets[session] > 0
            return HEAD.format("Basket") + (ASK if full else "<p role=status>Nothing here</p><a href='/'>Home</a>")
        if path == "/thanks":
            if self.noise.random() < 0.25:
                return HEAD.format("Basket") + "<p role=alert>Try again</p>" + ASK
            self.baskets[session] = 0
            return HEAD.format("Thanks") + "<a href='/'>Home</a>"
        if path == "/greet":
            return HEAD.format("Hello " + query.get("name", ["you"])[0]) + "<a href='/'>Home</a>"
        return HEAD.format("Bakery") + (
            "<a href='/basket?add=1'>Buy bread</a><a href='/basket'>Basket</a>"
            "<form action=/greet><input name=name aria-label=Name><button>Greet</button></form>"
        )

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served() -> Iterator[str]:
    """The address of the application."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bakery)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
