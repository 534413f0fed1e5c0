#!/usr/bin/env python3
"""WebSocket cases that have to come out the same directly and through Subak, byte for byte.

    websocket.py serve HOST PORT                            an echo server (needs wsproto)
    websocket.py cases DIRECT [--http1 ADDRESS] [--http2 ADDRESS] [--match TEXT]

Hundreds of conversations in the manner of Autobahn's fuzzing client: sizes around every form of a
length, reserved bits and opcodes, fragments with control frames between them, UTF-8 good and bad and cut
anywhere, close codes, masks, compression, chopped writes, and seeded nonsense. Each is held with the
echo server itself, through Subak by HTTP/1.1, and through Subak by an extended CONNECT of HTTP/2 (needs
h2). What came back is compared: the fields of the handshake that concern WebSocket, then every byte up
to the end. Whether the server is right is not judged here; that Subak changes nothing is.

Bounds: 10 s a conversation. Status 1 when a case came out otherwise.
"""

import argparse
import random
import select
import socket
import struct
import sys
import time
import zlib

PATIENCE_S = 10
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 1, 2, 8, 9, 10, 0
# A server that fails a connection may reset it, and a reset may overtake what was sent before: with or
# without Subak. Such a case is held again.
ATTEMPTS = 4


def frame(opcode, payload=b"", fin=True, rsv=0, mask=b"\x01\x7f\x80\xff", length=None, form=None):
    """One frame; `form` forces 7, 16 or 64 bits of length, `length` lies about it, mask None is none."""
    size = len(payload) if length is None else length
    form = form or (7 if size < 126 else 16 if size < 65536 else 64)
    first = bytes([(fin << 7) | (rsv << 4) | opcode])
    bit = 0 if mask is None else 0x80
    if form == 7:
        head = first + bytes([bit | size])
    elif form == 16:
        head = first + bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head = first + bytes([bit | 127]) + struct.pack(">Q", size)
    if mask is None:
        return head + payload
    key = (mask * (len(payload) // 4 + 1))[: len(payload)]
    masked = int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")
    return head + mask + masked.to_bytes(len(payload), "big")


BYE = frame(CLOSE, struct.pack(">H", 1000))


def deflated(data):
    packed = zlib.compressobj(wbits=-15)
    return (packed.compress(data) + packed.flush(zlib.Z_SYNC_FLUSH))[:-4]


def cases():
    """(name, writes, compression): each write leaves by itself."""
    plain = lambda name, *frames: (name, [b"".join(frames)], False)
    sizes = [0, 1, 124, 125, 126, 127, 128, 1000, 65534, 65535, 65536, 65537, 131072]
    for opcode, kind in ((TEXT, "text"), (BINARY, "binary")):
        for size in sizes:
            payload = b"*" * size if opcode == TEXT else bytes(i * 7 & 255 for i in range(size))
            whole = frame(opcode, payload)
            yield plain(f"{kind} of {size}", whole, BYE)
            if size in (1, 126, 1000, 65536):
                step = max(1, size // 150)
                chopped = [whole[at : at + step] for at in range(0, len(whole), step)]
                yield (f"{kind} of {size}, chopped", [*chopped, BYE], False)
    for size in (0, 1, 125, 126, 1000, 65536):
        for opcode, kind in ((PING, "ping"), (PONG, "pong")):
            yield plain(f"{kind} of {size}", frame(opcode, b"\xfe" * size), BYE)
    yield plain("ten pings", *(frame(PING, b"p%d" % n) for n in range(10)), BYE)
    ping = frame(PING, b"chopped")
    yield ("a ping byte by byte", [ping[at : at + 1] for at in range(len(ping))] + [BYE], False)
    yield plain("pong then ping", frame(PONG, b"x"), frame(PING, b"y"), BYE)
    for rsv in range(1, 8):
        for opcode, kind in ((TEXT, "text"), (BINARY, "binary"), (PING, "ping"), (CLOSE, "close")):
            bad = frame(opcode, b"" if opcode == CLOSE else b"reserved", rsv=rsv)
            yield plain(f"reserved bits {rsv} on {kind}", bad, BYE)
            yield plain(f"reserved bits {rsv} on {kind} after a text", frame(TEXT, b"a"), bad, BYE)
    for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15):
        for payload in (b"", b"reserved"):
            bad = frame(opcode, payload)
            yield plain(f"opcode {opcode} with {len(payload)}", bad, BYE)
            yield plain(f"opcode {opcode} with {len(payload)} after", frame(TEXT, b"a"), bad, BYE)
    for count in (2, 3, 10, 100):
        parts = [
            frame(TEXT if n == 0 else CONTINUATION, b"part%d " % n, fin=n == count - 1)
            for n in range(count)
        ]
        yield plain(f"{count} fragments", *parts, BYE)
        yield (f"{count} fragments, each alone", [*parts, BYE], False)
        between = [piece for part in parts for piece in (part, frame(PING, b"between"))]
        yield plain(f"{count} fragments with pings", *between, BYE)
        yield plain(f"{count} empty fragments", *(
            frame(BINARY if n == 0 else CONTINUATION, b"", fin=n == count - 1) for n in range(count)
        ), BYE)
    yield plain("a continuation of nothing", frame(CONTINUATION, b"x"), BYE)
    yield plain("a continuation of nothing, open", frame(CONTINUATION, b"x", fin=False), BYE)
    yield plain("text within text", frame(TEXT, b"a", fin=False), frame(TEXT, b"b"), BYE)
    yield plain("binary within text", frame(TEXT, b"a", fin=False), frame(BINARY, b"b"), BYE)
    yield plain("close within text", frame(TEXT, b"a", fin=False), BYE)
    yield plain("a ping in fragments", frame(PING, b"a", fin=False), frame(CONTINUATION, b"b"), BYE)
    yield plain("a close in fragments", frame(CLOSE, b"\x03\xe8", fin=False), BYE)
    good = ["κόσμε", "\u0000", "\u007f\u0080\u07ff\u0800\uffff", "\U00010000\U0010ffff", "\ufeffx",
            "日本語", "𝒳y", "é" * 63]
    bad = [b"\x80", b"\xbf", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf", b"\xf8\x88\x80\x80\x80",
           b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf4\x90\x80\x80", b"\xfe", b"\xff", b"\xc3", b"\xe2\x82",
           b"ok\xf0\x9f\x98", b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"]
    for number, payload in enumerate([text.encode() for text in good] + bad):
        yield plain(f"UTF-8 {number}", frame(TEXT, payload), BYE)
        for cut in range(1, min(len(payload), 12)):
            first, second = payload[:cut], payload[cut:]
            parts = frame(TEXT, first, fin=False), frame(CONTINUATION, second)
            yield plain(f"UTF-8 {number} cut at {cut}", *parts, BYE)
    codes = [0, 1, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1008, 1009, 1010, 1011, 1012,
             1013, 1014, 1015, 1016, 1100, 2000, 2999, 3000, 3999, 4000, 4999, 5000, 65535]
    for code in codes:
        yield plain(f"close {code}", frame(CLOSE, struct.pack(">H", code)))
        yield plain(f"close {code} with words", frame(CLOSE, struct.pack(">H", code) + b"why"))
    for size in (0, 1, 122, 123, 124, 125, 126, 1000):
        yield plain(f"close with {size} of words", frame(CLOSE, b"\x03\xe8" + b"w" * size))
    yield plain("close without anything", frame(CLOSE))
    yield plain("close with one byte", frame(CLOSE, b"\x03"))
    yield plain("close with bad words", frame(CLOSE, b"\x03\xe8\xed\xa0\x80"))
    yield plain("two closes", BYE, BYE)
    yield plain("text after close", BYE, frame(TEXT, b"late"))
    yield plain("ping after close", BYE, frame(PING, b"late"))
    for opcode, kind in ((TEXT, "text"), (PING, "ping"), (CLOSE, "close")):
        payload = b"" if opcode == CLOSE else b"bare"
        yield plain(f"{kind} without a mask", frame(opcode, payload, mask=None), BYE)
        yield plain(f"{kind} masked by zeros", frame(opcode, payload, mask=bytes(4)), BYE)
    for form in (16, 64):
        yield plain(f"5 in {form} bits", frame(BINARY, b"hello", form=form), BYE)
        yield plain(f"a ping in {form} bits", frame(PING, b"hello", form=form), BYE)
    yield plain("a length above all", frame(BINARY, b"", length=1 << 63, form=64), BYE)
    yield plain("an end within a frame", frame(TEXT, b"half", length=100))
    yield plain("an end within a head", frame(TEXT, b"x" * 200)[:3])
    yield plain("an end at once")
    yield ("an end without close", [frame(TEXT, b"words")], False)
    for size in (256 << 10, 1 << 20):
        payload = bytes(random.Random(size).randbytes(size))
        yield plain(f"binary of {size}", frame(BINARY, payload), BYE)
        for piece in (64, 4096, 65536) if size == 256 << 10 else (65536,):
            starts = range(0, size, piece)
            parts = [
                frame(CONTINUATION if at else BINARY, payload[at : at + piece], at + piece >= size)
                for at in starts
            ]
            yield plain(f"binary of {size} by {piece}", *parts, BYE)
    for count, size in ((1000, 0), (1000, 16), (500, 1024), (100, 16384)):
        yield plain(f"{count} messages of {size}", *[frame(BINARY, b"m" * size)] * count, BYE)
    for size in (0, 16, 125, 126, 1000, 65536, 300_000):
        words = (b"the quick brown fox %d " % size * (size // 20 + 1))[:size]
        packed = deflated(words)
        yield (f"deflated {size}", [frame(TEXT, packed, rsv=4) + BYE], True)
        half = len(packed) // 2
        parts = frame(TEXT, packed[:half], False, 4) + frame(CONTINUATION, packed[half:])
        yield (f"deflated {size} in fragments", [parts + BYE], True)
        yield (f"offered deflate and plain {size}", [frame(TEXT, words) + BYE], True)
    yield ("a deflated continuation", [frame(TEXT, b"a", False) + frame(CONTINUATION, b"b", rsv=4)], True)
    yield ("deflated nonsense", [frame(BINARY, b"\xff\xfe\xfd", rsv=4) + BYE], True)
    for seed in range(150):
        luck = random.Random(seed)
        frames = []
        for _ in range(luck.randrange(1, 8)):
            opcode = luck.choice([TEXT, BINARY, CONTINUATION, PING, PONG, BINARY, luck.randrange(16)])
            size = luck.choice([0, 1, 5, 125, 126, 300])
            payload = luck.randbytes(size) if opcode != TEXT else b"t" * size
            frames.append(frame(opcode, payload, luck.random() < 0.8, luck.random() < 0.05,
                                luck.randbytes(4)))
        yield plain(f"luck {seed}", *frames, BYE)


def opened(address):
    host, port = address.rsplit(":", 1)
    stream = socket.create_connection((host, int(port)), PATIENCE_S)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


EXTENSIONS = "permessage-deflate; client_no_context_takeover; server_no_context_takeover"


def by_http1(address, writes, compressed, ends):
    """(fields of the handshake, bytes behind it) of one conversation."""
    stream = opened(address)
    lines = ["GET /chat HTTP/1.1", "Host: example.com", "Upgrade: websocket", "Connection: Upgrade",
             f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: chat"]
    if compressed:
        lines.append(f"Sec-WebSocket-Extensions: {EXTENSIONS}")
    stream.sendall("\r\n".join([*lines, "", ""]).encode())
    received = b""
    while b"\r\n\r\n" not in received:
        news = stream.recv(65536)
        if not news:
            raise ConnectionError("no answer to the handshake")
        received += news
    head, received = received.split(b"\r\n\r\n", 1)
    status, *fields = head.decode().split("\r\n")
    if " 101 " not in status:
        raise ConnectionError(status)
    fields = dict(line.lower().split(": ", 1) for line in fields)
    proof = fields.get("sec-websocket-accept")
    if proof != "s3pplmbitxaq9kygzzhzrbk+xoo=":
        raise ConnectionError(f"the proof is {proof}")

    def send(data, is_last):
        count = stream.send(data) if data else 0
        if ends and is_last and count == len(data):
            stream.shutdown(socket.SHUT_WR)
        return count

    bytes_back = converse(stream, writes, send, lambda news: news or None, received)
    return shown(fields), bytes_back


def shown(fields):
    return tuple((name, fields.get(name)) for name in ("sec-websocket-protocol",
                                                       "sec-websocket-extensions"))


def converse(stream, writes, send, read, received):
    """Writes one piece after another and reads what comes, until the other side has ended."""
    stream.setblocking(False)
    deadline = time.monotonic() + PATIENCE_S
    pieces, broken = [memoryview(piece) for piece in writes], False
    while True:
        left = deadline - time.monotonic()
        if left < 0:
            return received + b" ...and no end"
        wants = [stream] if pieces and not broken else []
        readable, writable, _ = select.select([stream], wants, [], left)
        if readable:
            try:
                news = read(stream.recv(1 << 20))
            except ConnectionError:
                news = None
            except BlockingIOError:
                continue
            if news is None:
                return bytes(received)
            received += news
        elif writable:
            try:
                count = send(pieces[0], len(pieces) == 1)
            except BlockingIOError:
                continue
            except OSError:
                broken = True
                continue
            pieces[0] = pieces[0][count:]
            if not pieces[0]:
                pieces.pop(0)
                # A piece that leaves alone should arrive alone.
                if pieces and len(writes) < 200:
                    time.sleep(0.0005)


def by_http2(address, writes, compressed, ends):
    """The same on a stream of HTTP/2."""
    from h2.config import H2Configuration
    from h2.connection import H2Connection
    from h2 import events
    from h2.settings import SettingCodes

    stream = opened(address)
    connection = H2Connection(H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    stream.sendall(connection.data_to_send())
    while not connection.remote_settings.enable_connect_protocol:
        if SettingCodes.ENABLE_CONNECT_PROTOCOL in connection.remote_settings:
            if connection.remote_settings[SettingCodes.ENABLE_CONNECT_PROTOCOL]:
                break
        connection.receive_data(stream.recv(65536))
        stream.sendall(connection.data_to_send())
    fields = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
              (":path", "/chat"), (":authority", "example.com"), ("sec-websocket-version", "13"),
              ("sec-websocket-protocol", "chat")]
    if compressed:
        fields.append(("sec-websocket-extensions", EXTENSIONS))
    connection.send_headers(1, fields)
    stream.sendall(connection.data_to_send())
    state = {"fields": None, "ended": False, "out": b""}

    def take(data):
        received = b""
        for event in connection.receive_data(data):
            if isinstance(event, events.ResponseReceived):
                state["fields"] = {name.lower(): value.lower() for name, value in event.headers}
            elif isinstance(event, events.DataReceived):
                received += event.data
                connection.acknowledge_received_data(event.flow_controlled_length, 1)
            elif isinstance(event, (events.StreamEnded, events.StreamReset,
                                    events.ConnectionTerminated)):
                state["ended"] = True
        state["out"] += connection.data_to_send()
        return received

    received = b""
    while state["fields"] is None:
        data = stream.recv(65536)
        if not data:
            raise ConnectionError("no answer to the handshake")
        received += take(data)
    if state["fields"].get(":status") != "200":
        raise ConnectionError(f"status {state['fields'].get(':status')}")
    stream.setblocking(False)
    deadline = time.monotonic() + PATIENCE_S
    pieces, has_ended = [memoryview(piece) for piece in writes], False
    while not state["ended"]:
        left = deadline - time.monotonic()
        if left < 0:
            return shown(state["fields"]), received + b" ...and no end"
        if not state["out"] and not has_ended:
            window = min(connection.local_flow_control_window(1), connection.max_outbound_frame_size)
            while pieces and not pieces[0]:
                pieces.pop(0)
            if not pieces:
                if ends:
                    connection.end_stream(1)
                has_ended = True
            elif window > 0:
                connection.send_data(1, bytes(pieces[0][:window]))
                pieces[0] = pieces[0][window:]
            state["out"] += connection.data_to_send()
        wants = [stream] if state["out"] else []
        readable, writable, _ = select.select([stream], wants, [], left)
        if readable:
            try:
                data = stream.recv(1 << 20)
            except BlockingIOError:
                continue
            except ConnectionError:
                data = b""
            if not data:
                break
            received += take(data)
        if writable:
            try:
                state["out"] = state["out"][stream.send(state["out"]):]
            except BlockingIOError:
                pass
            except OSError:
                break
    return shown(state["fields"]), received


def held(way, address, case):
    try:
        name, writes, compressed = case
        # Only these end their side before they have been answered, as few clients do.
        return way(address, writes, compressed, name.startswith("an end"))
    except (OSError, ConnectionError) as error:
        return (str(error),)


def compare(arguments):
    ways = []
    if arguments.http1:
        ways.append(("HTTP/1.1", by_http1, arguments.http1))
    if arguments.http2:
        ways.append(("HTTP/2", by_http2, arguments.http2))
    counts = {name: 0 for name, _, _ in ways}
    failed = 0
    for case in cases():
        if arguments.match and arguments.match not in case[0]:
            continue
        for name, way, address in ways:
            for attempt in range(ATTEMPTS):
                direct, through = held(by_http1, arguments.direct, case), held(way, address, case)
                if direct == through:
                    break
            if direct == through:
                counts[name] += 1
            else:
                failed += 1
                print(f"{case[0]}, by {name}:\n  direct  {str(direct)[:300]}\n  through {str(through)[:300]}")
    for name, count in counts.items():
        print(f"{name}: {count} conversations came out as they do directly")
    print(f"{failed} came out otherwise")
    return 1 if failed else 0


def serve(host, port):
    """Answers every message by the same, frame after frame in the order of their arrival."""
    import socketserver
    from wsproto import ConnectionType, WSConnection
    from wsproto.events import (AcceptConnection, BytesMessage, CloseConnection, Ping, Request,
                                TextMessage)
    from wsproto.extensions import PerMessageDeflate
    from wsproto.utilities import RemoteProtocolError

    class Echo(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.settimeout(2 * PATIENCE_S)
            try:
                self.converse(self.request, WSConnection(ConnectionType.SERVER))
                # Closing with bytes that nobody read would reset the connection, and a reset overtakes.
                self.request.shutdown(socket.SHUT_WR)
                while self.request.recv(65536):
                    pass
            except OSError:
                pass

        def converse(self, stream, connection):
            parts = []
            while True:
                data = stream.recv(65536)
                try:
                    connection.receive_data(data or None)
                    for event in connection.events():
                        answer = reply(event, parts)
                        if answer is not None:
                            stream.sendall(connection.send(answer))
                        # Its own verdict on what was wrong is one of these too.
                        if isinstance(event, CloseConnection):
                            return
                except RemoteProtocolError as error:
                    if error.event_hint is not None:
                        stream.sendall(connection.send(error.event_hint))
                    return
                if not data:
                    return

    def reply(event, parts):
        if isinstance(event, Request):
            return AcceptConnection(subprotocol="chat", extensions=[PerMessageDeflate()])
        if isinstance(event, (Ping, CloseConnection)):
            return event.response()
        if isinstance(event, (TextMessage, BytesMessage)):
            parts.append(event.data)
            if event.message_finished:
                whole = type(event.data)().join(parts)
                parts.clear()
                return type(event)(data=whole)
        return None

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address, daemon_threads, request_queue_size = True, True, 128

        def handle_error(self, *_):
            pass

    with Server((host, port), Echo) as server:
        server.serve_forever()


def main():
    if sys.argv[1:2] == ["serve"] and len(sys.argv) == 4:
        return serve(sys.argv[2], int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("command", choices=["cases"])
    parser.add_argument("direct")
    parser.add_argument("--http1")
    parser.add_argument("--http2")
    parser.add_argument("--match")
    return compare(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
