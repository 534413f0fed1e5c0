"""Conversations that break TLS, held with servers: which alert does each send, and does it close?

    alerts.py NAME=HOST:PORT ...

The first server is judged: its alert has to be one that RFC 5246 or 8446 allows for the case, or that
KNOWN lists. The others are for comparison. The client is tlslite-ng.
"""

import socket
import sys

from tlslite.api import HandshakeSettings, TLSConnection
from tlslite.constants import AlertDescription, ContentType
from tlslite.errors import TLSAbruptCloseError, TLSAlert, TLSError
from tlslite.extensions import TLSExtension
from tlslite.messages import ClientHello, ClientKeyExchange, Finished, Message

PATIENCE = 3
REQUEST = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"
BOTH, OLD, NEW = ((3, 3), (3, 4)), ((3, 3),), ((3, 4),)
HANDSHAKE, DATA = ContentType.handshake, ContentType.application_data
CHANGE, ALERT = ContentType.change_cipher_spec, ContentType.alert

# Where rustls 0.23 says something else: docs/tls.md lists it.
KNOWN = {
    "no supported_groups": "handshake_failure",
    "a record of an unknown type": "decode_error",
    "a record of 2^14 + 2049 bytes": "decode_error",
    "a handshake message in two records, data between": "end",
    "a handshake message of 2^16 bytes": "end",
}


class Client(TLSConnection):
    """A client whose messages are changed on their way out."""

    def __init__(self, address, change=None):
        stream = socket.create_connection(address, timeout=PATIENCE)
        super().__init__(stream)
        self.change = change

    def _sendMsg(self, msg, *arguments, **more):
        changed = self.change(msg) if self.change else None
        return super()._sendMsg(changed or msg, *arguments, **more)

    def shake(self, version):
        settings = HandshakeSettings()
        settings.minVersion = settings.maxVersion = version
        settings.cipherNames = ["aes128gcm"]
        settings.keyShares = ["secp256r1"]
        settings.eccCurves = ["secp256r1"]
        self.handshakeClientCert(settings=settings, serverName="a.example")

    def say(self, kind, data):
        """One record, encrypted as the state has it."""
        for _ in self._recordLayer.sendRecord(Message(kind, bytearray(data))):
            pass

    def ask(self):
        """A request and its response."""
        self.say(DATA, REQUEST)
        response = b""
        while not response.endswith(b"hello"):
            response += bytes(self.read(max=4096, min=1))


def more(client):
    """Waits for what comes next; the end is an exception."""
    if not client.read(max=1, min=1):
        raise TLSAbruptCloseError()


def behind(*records):
    """A case: a handshake, a request, then these records as they are encrypted."""

    def play(client, version):
        client.shake(version)
        client.ask()
        for kind, data in records:
            client.say(kind, data)
        more(client)

    return play


def raw(data):
    """A case: a handshake, a request, then these bytes."""

    def play(client, version):
        client.shake(version)
        client.ask()
        client.sock.sendall(data)
        more(client)

    return play


def changed(kind, change):
    """A case: a handshake with one message replaced."""

    def play(client, version):
        client.change = lambda message: change(message) if isinstance(message, kind) else None
        client.shake(version)
        more(client)

    return play


def flipped(message):
    data = message.write()
    data[-1] ^= 1
    return Message(HANDSHAKE, data)


def lengthened(message):
    """A handshake message with a byte more than it says, inside its length."""
    data = message.write()
    length = int.from_bytes(data[1:4], "big") + 1
    return Message(HANDSHAKE, data[:1] + length.to_bytes(3, "big") + data[4:] + b"\0")


def of_extension(change):
    """A hello whose list of extensions is changed."""

    def hello(message):
        change(message.extensions)
        return Message(HANDSHAKE, message.write())

    return changed(ClientHello, hello)


def without(kind):
    return of_extension(
        lambda all: all.__setitem__(slice(None), [one for one in all if one.extType != kind])
    )


def replaced(kind, data):
    def change(extensions):
        for index, one in enumerate(extensions):
            if one.extType == kind:
                extensions[index] = TLSExtension(extType=kind).create(bytearray(data))

    return of_extension(change)


def attribute(name, value):
    def hello(message):
        setattr(message, name, value)
        return Message(HANDSHAKE, message.write())

    return changed(ClientHello, hello)


def renegotiates(client, version):
    client.shake(version)
    client.ask()
    hello = ClientHello().create((3, 3), bytearray(32), bytearray(), [0xC02B, 0xC02F])
    client.say(HANDSHAKE, hello.write())
    more(client)


def updates_keys(client, version):
    client.shake(version)
    client.ask()
    for _ in client.send_keyupdate_request(1):
        pass
    client.ask()
    return "served"


def closes(client, version):
    client.shake(version)
    client.ask()
    client.say(ALERT, [1, 0])
    more(client)


POINT = b"\x10\0\0\x42\x41\4" + bytes([7]) * 64
MAC = bytes([DATA, 3, 3, 0, 64]) + bytes(64)
# Case: what is played, in which versions, which outcomes are right.
CASES = {
    "no hello without compression": (
        attribute("compression_methods", [1]), BOTH, "illegal_parameter decode_error"),
    "no cipher in common": (
        attribute("cipher_suites", [0x0005, 0x00FF]), BOTH, "handshake_failure"),
    "a hello that is too long by a byte": (changed(ClientHello, lengthened), BOTH, "decode_error"),
    "no signature_algorithms": (without(13), NEW, "missing_extension"),
    "no supported_groups": (without(10), NEW, "missing_extension"),
    "supported_groups of an odd length": (replaced(10, b"\0\3\0\x17\0"), BOTH, "decode_error"),
    "an empty list of groups": (
        replaced(10, b"\0\0"), BOTH, "decode_error illegal_parameter handshake_failure"),
    "a key share that is not on the curve": (
        replaced(51, b"\0\x45\0\x17\0\x41\4" + bytes([7]) * 64), NEW, "illegal_parameter"),
    "a key share that is too short": (
        replaced(51, b"\0\x08\0\x17\0\x04\4\1\1\1"), NEW, "illegal_parameter decode_error"),
    "unknown versions": (replaced(43, b"\2\3\5"), NEW, "protocol_version"),
    "a point that is not on the curve": (
        changed(ClientKeyExchange, lambda _: Message(HANDSHAKE, bytearray(POINT))), OLD,
        "illegal_parameter decode_error handshake_failure"),
    "a Finished with another value": (changed(Finished, flipped), BOTH, "decrypt_error"),
    "a Finished that is too long": (
        changed(Finished, lengthened), BOTH, "decode_error decrypt_error"),
    "data in place of the Finished": (
        changed(Finished, lambda _: Message(DATA, bytearray(REQUEST))), BOTH, "unexpected_message"),
    "a hello in place of the Finished": (
        changed(Finished, lambda _: Message(HANDSHAKE, bytearray(b"\1\0\0\4abcd"))), BOTH,
        "unexpected_message decode_error"),
    "a record with a wrong MAC": (raw(MAC), BOTH, "bad_record_mac"),
    "a record of an unknown type": (raw(bytes([0x40, 3, 3, 0, 1, 1])), BOTH, "unexpected_message"),
    "a record of 2^14 + 2049 bytes": (
        raw(bytes([DATA, 3, 3, 0x48, 1]) + bytes(0x4801)), BOTH, "record_overflow"),
    "2^14 + 1 bytes in a record": (behind((DATA, bytes(16385))), BOTH, "record_overflow"),
    # 32 of them are let pass.
    "an empty handshake record": (behind((HANDSHAKE, b"")), BOTH, "unexpected_message silence"),
    "an alert of one byte": (behind((ALERT, [1])), BOTH, "decode_error unexpected_message"),
    "an empty alert": (behind((ALERT, b"")), BOTH, "decode_error unexpected_message"),
    "a hello behind the handshake": (
        behind((HANDSHAKE, b"\1\0\0\4abcd")), NEW, "unexpected_message decode_error"),
    "ChangeCipherSpec behind the handshake": (
        raw(bytes([CHANGE, 3, 3, 0, 1, 1])), NEW, "unexpected_message"),
    "a Finished behind the handshake": (
        behind((HANDSHAKE, b"\x14\0\0\x0c" + bytes(12))), BOTH, "unexpected_message decode_error"),
    "a KeyUpdate that is neither request nor answer": (
        behind((HANDSHAKE, b"\x18\0\0\1\2")), NEW, "illegal_parameter"),
    "a KeyUpdate of two bytes": (behind((HANDSHAKE, b"\x18\0\0\2\0\0")), NEW, "decode_error"),
    "a handshake message in two records, data between": (
        behind((HANDSHAKE, b"\x18\0"), (DATA, b"x")), NEW, "unexpected_message"),
    "a handshake message of 2^16 bytes": (
        behind((HANDSHAKE, b"\x18\1\0\0" + bytes(9))), NEW,
        "unexpected_message decode_error illegal_parameter"),
    "a renegotiation": (renegotiates, OLD, "no_renegotiation"),
    "a KeyUpdate that wants an answer": (updates_keys, NEW, "served"),
    "close_notify": (closes, BOTH, "end"),
    "a fatal alert": (behind((ALERT, [2, 80])), BOTH, "end"),
}


def outcome(address, play, version):
    """An alert's name, `end`, `reset`, `silence`, or what else became of it."""
    client = Client(address)
    try:
        return play(client, version) or "data"
    except TLSAlert as alert:
        name = AlertDescription.toStr(alert.description)
        if alert.description == AlertDescription.no_renegotiation:
            return name
        return name + ended(client)
    except TLSAbruptCloseError:
        return "end"
    except socket.timeout:
        return "silence"
    except ConnectionError:
        return "reset"
    except TLSError as error:
        return type(error).__name__
    finally:
        client.sock.close()


def ended(client):
    """Nothing, where the connection ends behind the alert."""
    try:
        while client.sock.recv(4096):
            pass
        return ""
    except socket.timeout:
        return ", left open"
    except OSError:
        return ""


def main():
    servers = [argument.split("=") for argument in sys.argv[1:]]
    addresses = [(host, int(port)) for host, port in (place.split(":") for _, place in servers)]
    print(" | ".join(["case", "allowed", *(name for name, _ in servers)]))
    right = [0] * len(servers)
    count, wrong = 0, []
    for name, (play, versions, allowed) in CASES.items():
        for version in versions:
            label = f"{name} (1.{version[1] - 1})"
            outcomes = [outcome(address, play, version) for address in addresses]
            print(" | ".join([label, allowed, *outcomes]), flush=True)
            count += 1
            for index, found in enumerate(outcomes):
                right[index] += found in allowed.split()
            if outcomes[0] not in [*allowed.split(), KNOWN.get(name)]:
                wrong.append(f"{label}: {outcomes[0]}, not {allowed}")
    for (name, _), number in zip(servers, right):
        print(f"{name}: {number} of {count} as the standards have it")
    for line in wrong:
        print(f"wrong: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
