#!/usr/bin/env python3
"""An HTTP/1.1 endpoint that reads a request to its end before it answers: reader.py HOST PORT"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ANSWER = b"an answer of some bytes"


class Reader(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        if self.headers.get("transfer-encoding"):
            while size := int(self.rfile.readline().split(b";")[0], 16):
                self.rfile.read(size + 2)
            while self.rfile.readline().strip():
                pass
        else:
            self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(ANSWER)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(ANSWER)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = answer


if __name__ == "__main__":
    ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Reader).serve_forever()
