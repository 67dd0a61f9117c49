"""A random walk as a server: `python examples/server.py`, then `axplore explore http://localhost:8080/ --radius 3`.

Each session, told apart by the header `Axplore-Session`, has a walk of its own.
"""

import json
import random
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

places: dict[str, int] = {}


class Walk(BaseHTTPRequestHandler):
    """Answers {"reset": true} and {"action": "left"} or {"action": "right"}; one step in five goes the other way."""

    protocol_version = "HTTP/1.1"  # so that the connection stays open
    disable_nagle_algorithm = True  # or every answer may wait 40 ms for the acknowledgement of its header

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        session = self.headers["Axplore-Session"]
        if "reset" in request:
            places[session] = 0
        else:
            goes_right = (request["action"] == "right") != (random.random() < 0.2)
            places[session] = max(0, places[session] + (1 if goes_right else -1))
        body = json.dumps({"state": places[session], "actions": ["left", "right"]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("localhost", int(sys.argv[1]) if sys.argv[1:] else 8080), Walk).serve_forever()
