#!/usr/bin/env python3
"""Asks a real nginx whom it picks, and writes the answers beside this script.

usage: produce.py [nginx binary]

Runs an nginx of its own in a temporary directory: one worker that balances over endpoints of the
same nginx on Unix sockets, and, for the endpoint that dies half-way, a second nginx. Where the names
of endpoints matter they listen on the NAMES below. Clients are presented by X-Forwarded-For, other
keys by X-Key. Needs no root and leaves nothing behind.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
NGINX = sys.argv[1] if len(sys.argv) > 1 else shutil.which("nginx") or "/usr/sbin/nginx"
MASK = (1 << 64) - 1
BATCH = 50
# A consistent hash depends on how endpoints are written.
NAMES = [
    "127.0.0.1:18471",
    "127.0.0.2:18471",
    "127.0.0.3:18472",
    "[::1]:18473",
    "unix:/tmp/subak-golden-4",
    "127.0.0.1:18475",
]


class Rng:
    """subak_base::Rng: SplitMix64."""

    def __init__(self, seed):
        self.state = seed

    def next_u64(self):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)


def clients(family, seed, count):
    rng = Rng(seed)
    for _ in range(count):
        if family == "ipv4":
            yield socket.inet_ntop(socket.AF_INET, (rng.next_u64() >> 32).to_bytes(4, "big"))
        elif family == "ipv6":
            high, low = rng.next_u64(), rng.next_u64()
            yield socket.inet_ntop(socket.AF_INET6, ((high << 64) | low).to_bytes(16, "big"))
        elif family == "text":
            word = f"{rng.next_u64():016x}"
            yield "/" + word[: 1 + int(word[0], 16)]
        else:
            yield "192.0.2.1"


def case(
    name, algorithm, weights, clients="one", seed=0, count=300, down=(), refused=(), dies=None,
    method=None,
):
    """`refused` endpoints refuse every connection and are asked again by every request; `dies` is
    (endpoint, after how many requests), and is not asked again once it has refused."""
    return dict(locals())


def cases():
    for algorithm in ("round_robin", "least_connections"):
        for weights in ("1:1:1", "2:1:1", "3:1:1", "3:1:2", "5:1:1", "7:3:2:1:1", "4:4:2:6"):
            yield case(f"{algorithm}-{weights.replace(':', '-')}", algorithm, weights)
        yield case(f"{algorithm}-5-1-2-down-1", algorithm, "5:1:2", down=(1,))
    seed = 0
    for family in ("ipv4", "ipv6"):
        for weights in ("1:1:1", "3:1:2"):
            base = f"ip_hash-{family}-{weights.replace(':', '-')}"
            variants = [
                ("", {}),
                ("-down-0", {"down": (0,)}),
                ("-down-0-1", {"down": (0, 1)}),
                ("-refused-2", {"refused": (2,)}),
                ("-refused-0-1", {"refused": (0, 1)}),
                ("-dies-0", {"dies": (0, 5_000)}),
            ]
            for suffix, options in variants:
                seed += 1
                yield case(base + suffix, "ip_hash", weights, family, seed, 10_000, **options)
        seed += 1
        name = f"ip_hash-{family}-2-1-3-1-1-4-refused-0-3-down-5"
        options = {"refused": (0, 3), "down": (5,)}
        yield case(name, "ip_hash", "2:1:3:1:1:4", family, seed, 10_000, **options)


    for method in ("nginx_modulo", "ring"):
        for family in ("ipv4", "ipv6", "text"):
            for weights in ("1:1:1", "3:1:2:1:1:2"):
                base = f"hash-{method}-{family}-{weights.replace(':', '-')}"
                variants = [("", {})]
                if family == "ipv4":
                    variants += [
                        ("-down-0", {"down": (0,)}),
                        ("-refused-2", {"refused": (2,)}),
                        ("-dies-0", {"dies": (0, 2_500)}),
                    ]
                if weights != "1:1:1":
                    variants += [("-refused-0-3-down-4", {"refused": (0, 3), "down": (4,)})]
                for suffix, options in variants:
                    seed += 1
                    options["method"] = method
                    yield case(base + suffix, "hash", weights, family, seed, 5_000, **options)


class Instance:
    """A running nginx, waited for at start and at stop."""

    def __init__(self, directory, name, body, sockets):
        self.sockets = sockets
        path = os.path.join(directory, name)
        os.makedirs(path)
        config = os.path.join(path, "nginx.conf")
        with open(config, "w") as file:
            file.write(
                "daemon off; worker_processes 1; pid nginx.pid; error_log error.log crit;\n"
                "events { worker_connections 1024; }\n"
                "http { access_log off; client_body_temp_path a; proxy_temp_path b;\n"
                "fastcgi_temp_path c; uwsgi_temp_path d; scgi_temp_path e;\n"
                f"{body} }}\n"
            )
        command = [NGINX, "-p", path, "-e", "error.log", "-c", config]
        self.process = subprocess.Popen(command)
        wait(lambda: all(answers(socket) for socket in sockets), f"{name} listens")

    def kill(self):
        """Ends it at once; its sockets stay in the file system and refuse."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        for path in self.sockets:
            refuse(path)


def wait(condition, what):
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited in vain: {what}")
        time.sleep(0.01)


def answers(address):
    family, place = parse(address)
    with socket.socket(family) as probe:
        return probe.connect_ex(place) == 0


def parse(address):
    """The family and the place of an address as nginx writes it."""
    if address.startswith("unix:"):
        return socket.AF_UNIX, address[len("unix:") :]
    host, port = address.rsplit(":", 1)
    family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
    return family, (host.strip("[]"), int(port))


def refuse(address):
    """A socket nobody listens to."""
    family, path = parse(address)
    if family != socket.AF_UNIX:
        return  # nobody listens there anyway
    remove(address)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    os.chmod(path, 0o666)


def remove(address):
    """The file of a Unix socket, if it is one."""
    family, path = parse(address)
    if family == socket.AF_UNIX and os.path.exists(path):
        os.unlink(path)


def endpoint(address):
    return f"server {{ listen {address}; return 200 ''; }}"


def names(case, directory):
    count = case["weights"].count(":") + 1
    if case["method"] == "ring":
        return NAMES[:count]
    return ["unix:" + os.path.join(directory, f"e{index}") for index in range(count)]


def run(case, directory):
    weights = [int(weight) for weight in case["weights"].split(":")]
    paths = names(case, directory)
    dies, after = case["dies"] or (None, None)
    front = "unix:" + os.path.join(directory, "front")

    for path in paths:
        remove(path)
    servers, endpoints, sockets = [], [], [front]
    for index, (weight, path) in enumerate(zip(weights, paths)):
        limits = "max_fails=1 fail_timeout=1d" if index == dies else "max_fails=0"
        down = " down" if index in case["down"] else ""
        servers.append(f"server {path} weight={weight} {limits}{down};")
        if index in case["refused"]:
            refuse(path)
        elif index != dies:
            endpoints.append(endpoint(path))
            sockets.append(path)
    methods = {"round_robin": "", "ip_hash": "ip_hash;", "least_connections": "least_conn;"}
    key = "$http_x_key" if case["clients"] == "text" else "$remote_addr"
    consistent = " consistent" if case["method"] == "ring" else ""
    method = methods.get(case["algorithm"], f"hash {key}{consistent};")
    body = f"""
        upstream pool {{ {method} {" ".join(servers)} }}
        {" ".join(endpoints)}
        server {{
            listen {front};
            keepalive_requests 1000000;
            set_real_ip_from unix:;
            real_ip_header X-Forwarded-For;
            location / {{
                proxy_pass http://pool;
                add_header X-Tried "$upstream_addr" always;
                add_header X-Client "$remote_addr" always;
                add_header X-Key "$http_x_key" always;
            }}
        }}"""
    mortal = None
    if dies is not None:
        mortal = Instance(directory, "mortal", endpoint(paths[dies]), [paths[dies]])
    balancer = Instance(directory, "balancer", body, sockets)
    try:
        return ask(case, front, paths, mortal, after)
    finally:
        balancer.kill()
        if mortal and mortal.process.poll() is None:
            mortal.kill()
        for path in paths:
            remove(path)


def ask(case, front, paths, mortal, after):
    """One letter for each refusal (a is endpoint 0) and one digit for the endpoint that answered."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(parse(front)[1])
    answers = connection.makefile("rb")
    index_of = {path: index for index, path in enumerate(paths)}
    picks, all_clients = [], list(clients(case["clients"], case["seed"], case["count"]))
    for start in range(0, len(all_clients), BATCH):
        if start == after:
            mortal.kill()
        batch = all_clients[start : start + BATCH]
        field = "X-Key" if case["clients"] == "text" else "X-Forwarded-For"
        head = f"GET / HTTP/1.1\r\nHost: golden\r\n{field}: {{}}\r\n\r\n"
        connection.sendall("".join(head.format(client) for client in batch).encode())
        for client in batch:
            tried = read_answer(answers, field, client)
            indices = [index_of[address] for address in tried.split(", ")]
            picks.append("".join(chr(ord("a") + index) for index in indices[:-1]))
            picks.append(str(indices[-1]))
    connection.close()
    return "".join(picks)


def read_answer(answers, field, client):
    status = answers.readline()
    if not status.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{client}: {status!r}")
    fields = {}
    for line in iter(answers.readline, b"\r\n"):
        name, value = line.decode().split(":", 1)
        fields[name.lower()] = value.strip()
    if fields.get("transfer-encoding") == "chunked":
        while answers.readline() != b"0\r\n":
            answers.readline()
        answers.readline()
    else:
        answers.read(int(fields["content-length"]))
    seen = fields["x-key" if field == "X-Key" else "x-client"]
    if seen != client:
        raise SystemExit(f"nginx took {client} for {seen}")
    return fields["x-tried"]


def write(case, picks):
    joined = lambda indices: " ".join(str(index) for index in indices) or "-"
    dies, after = case["dies"] or ("-", "")
    with open(os.path.join(HERE, case["name"] + ".txt"), "w") as file:
        file.write(f"algorithm {case['algorithm']}\n")
        if case["method"]:
            file.write(f"method {case['method']}\n")
        if case["method"] == "ring":
            file.write(f"names {' '.join(names(case, ''))}\n")
        file.write(f"weights {case['weights']}\n")
        file.write(f"clients {case['clients']} {case['seed']} {case['count']}\n")
        file.write(f"down {joined(case['down'])}\nrefused {joined(case['refused'])}\n")
        file.write(f"dies {dies} {after}".rstrip() + "\n\n")
        file.writelines(picks[start : start + 100] + "\n" for start in range(0, len(picks), 100))


def main():
    version = subprocess.run([NGINX, "-v"], capture_output=True, text=True).stderr
    print(re.sub(r"^nginx version: ", "", version.strip()))
    for this in cases():
        with tempfile.TemporaryDirectory(prefix="golden-") as directory:
            os.chmod(directory, 0o755)  # a worker started by root runs as another user
            write(this, run(this, directory))
        print(this["name"], flush=True)


main()
