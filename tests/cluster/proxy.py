# SPDX-License-Identifier: Apache-2.0
"""What stands between a program and its API server, and does it harm.

    with proxy.Proxy(cluster) as between:
        config = cluster.kubeconfig("drover", between.url)   # a user with a token
        between.duplicate("nodes")
        between.cut()

Proxy ends TLS, speaks HTTP/1.1 and knows requests: faults are given for a kind ("nodes", "jobs",
"skyhooks") or for all of them (None). Relay passes bytes on, so that the program and the server
speak HTTP/2 with each other; it cuts and stalls whole connections. Faults last until heal().
"""

import collections
import http.client
import http.server
import json
import re
import select
import socket
import ssl
import struct
import threading
import time
import urllib.parse

POLL_SECONDS = 0.02
COPY_BYTES = 65536
HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "keep-alive"}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
EXPIRED = {"type": "ERROR", "object": {
    "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410,
    "message": "too old resource version (by the proxy)"}}


def kind_of(path):
    """/apis/batch/v1/namespaces/x/jobs/y/status -> jobs"""
    parts = urllib.parse.urlsplit(path).path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if len(parts) > 2 and parts[0] == "namespaces":
        parts = parts[2:]
    return parts[0] if parts else ""


def reset(sock):
    """Closes it so that the other side sees a reset, at once."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Faults:
    """What is done to requests now. Each is kept by kind; None stands for all kinds."""

    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        self.stalled = set()
        self.delays = {}
        self.doubled = set()
        self.rewound = {}
        self.expired = collections.Counter()
        self.lost = collections.Counter()  # (kind, before or after)
        self.refused = []  # [kind, count, status, retry after]

    def has(self, kinds, kind):
        return None in kinds or kind in kinds

    def take(self, counter, kind):
        """One of those that are counted, if there is one left."""
        with self.lock:
            for key in (kind, None):
                if counter[key] > 0:
                    counter[key] -= 1
                    return True
        return False


class Proxy:
    """One API server, as seen through it, is at url."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.faults = Faults()
        self.live = {}  # socket -> (kind, is a watch)
        self.silent = set()  # sockets of watches that nothing comes of any more
        self.requests = collections.Counter()  # (method or "WATCH", kind)
        self.harmed = collections.Counter()    # events, by what was done to them
        # Called with kind and status when the server has answered a write, before the program
        # hears of it.
        self.written = lambda kind, status: None
        pki = cluster.folder / "pki"
        self.upstream = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(str(pki / "server.crt"), str(pki / "server.key"))
        proxy = self

        class Handler(RequestHandler):
            """Requests of one connection."""
            owner = proxy

        self.server = QuietServer(("127.0.0.1", 0), Handler)
        self.server.tls = tls
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(POLL_SECONDS,),
                         daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.cut()

    # ---- harm

    def cut(self, kind=None, watches_only=False):
        """Resets the connections on which something is under way."""
        for sock, (of, is_watch) in list(self.live.items()):
            if kind in (None, of) and (is_watch or not watches_only):
                self.live.pop(sock, None)
                reset(sock)

    def stall(self, kind=None):
        """Connections stay open, and nothing comes any more."""
        self.faults.stalled.add(kind)

    def silence(self, kind=None):
        """Watches that run stay open and are told nothing more; those that begin later are."""
        for sock, (of, is_watch) in list(self.live.items()):
            if kind in (None, of) and is_watch:
                self.silent.add(sock)

    def flow(self, kind=None):
        """What was stalled goes on, with all that was held back."""
        self.faults.stalled.discard(kind)

    def delay(self, kind, seconds):
        """Events of a kind come late: other kinds overtake them."""
        self.faults.delays[kind] = seconds

    def duplicate(self, kind=None):
        """Events come twice, the second time after the next one."""
        self.faults.doubled.add(kind)

    def expire(self, kind=None, times=1):
        """Watches that run are told 410 with their next event; so is the next one that begins."""
        self.faults.expired[kind] += times

    def rewind(self, kind, version):
        """A server that is behind: watches that go on from a version begin at this older one."""
        self.faults.rewound[kind] = version

    def lose(self, kind=None, times=1, before=False):
        """Writes are carried out and the answer is lost; before: they are lost themselves."""
        self.faults.lost[kind, before] += times

    def refuse(self, kind=None, times=1, status=429, retry_after=None):
        """Writes are answered with an error and not carried out."""
        with self.faults.lock:
            self.faults.refused.append([kind, times, status, retry_after])

    def heal(self):
        self.faults.clear()


class QuietServer(http.server.ThreadingHTTPServer):
    """Connections that break are what it is for: no words about them."""

    daemon_threads = True
    request_queue_size = 128
    tls = None

    def finish_request(self, request, client_address):
        # The handshake is the connection's own affair, not that of all who wait behind it.
        try:
            with self.tls.wrap_socket(request, server_side=True) as sock:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                super().finish_request(sock, client_address)
        except (OSError, ValueError):
            pass

    def handle_error(self, request, client_address):
        pass


class RequestHandler(http.server.BaseHTTPRequestHandler):
    """Passes a request on, and its answer back."""

    protocol_version = "HTTP/1.1"
    owner = None

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass

    def setup(self):
        super().setup()
        self.link = http.client.HTTPSConnection("127.0.0.1", self.owner.cluster.port,
                                                context=self.owner.upstream, timeout=600)

    def finish(self):
        self.link.close()
        super().finish()

    def handle_any(self):
        self.kind = kind_of(self.path)
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        self.is_watch = query.get("watch", ["0"])[0] in ("1", "true")
        self.owner.requests["WATCH" if self.is_watch else self.command, self.kind] += 1
        self.owner.live[self.connection] = (self.kind, self.is_watch)
        try:
            self.pass_on(query)
        except (OSError, http.client.HTTPException, ValueError):
            self.close_connection = True
            reset(self.connection)
        finally:
            self.owner.live.pop(self.connection, None)
            self.owner.silent.discard(self.connection)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

    def wait_while_stalled(self):
        while self.owner.faults.has(self.owner.faults.stalled, self.kind):
            time.sleep(POLL_SECONDS)
            if self.connection.fileno() < 0:
                raise OSError("closed")

    def pass_on(self, query):
        faults = self.owner.faults
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.wait_while_stalled()
        is_write = self.command in WRITES
        if is_write and self.is_refused():
            return
        if is_write and self.is_lost(before=True):
            raise OSError("lost")
        goes_on = self.is_watch and "resourceVersion" in query
        if goes_on and faults.take(faults.expired, self.kind):
            self.answer(410, EXPIRED["object"])
            return
        path = self.path
        if goes_on and faults.has(faults.rewound, self.kind):
            version = faults.rewound.get(self.kind, faults.rewound.get(None))
            path = re.sub(r"resourceVersion=\d+", f"resourceVersion={version}", path)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in HOP_HEADERS | {"host", "accept-encoding"}}
        self.link.request(self.command, path, body=body or None, headers=headers)
        reply = self.link.getresponse()
        if is_write:
            self.owner.written(self.kind, reply.status)
        if is_write and self.is_lost(before=False):
            reply.read()
            raise OSError("lost")
        if self.is_watch and reply.status == 200:
            self.stream(reply)
        else:
            data = reply.read()
            self.wait_while_stalled()
            self.send_all(reply.status, reply.getheaders(), data)

    def is_lost(self, before):
        faults = self.owner.faults
        with faults.lock:
            for key in ((self.kind, before), (None, before)):
                if faults.lost[key] > 0:
                    faults.lost[key] -= 1
                    return True
        return False

    def is_refused(self):
        faults = self.owner.faults
        with faults.lock:
            rule = next((rule for rule in faults.refused
                         if rule[0] in (None, self.kind) and rule[1] > 0), None)
            if rule:
                rule[1] -= 1
        if not rule:
            return False
        more = [("Retry-After", str(rule[3]))] if rule[3] is not None else []
        self.answer(rule[2], {"kind": "Status", "apiVersion": "v1", "code": rule[2],
                              "message": "by the proxy"}, more)
        return True

    def answer(self, status, thing, headers=()):
        self.send_all(status, [("Content-Type", "application/json"), *headers],
                      json.dumps(thing).encode())

    def send_all(self, status, headers, data):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def stream(self, reply):
        """Line by line, each an event."""
        faults = self.owner.faults
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        held = None  # an event that comes again, behind the next one
        waited = 0
        for line in reply:
            late = faults.delays.get(self.kind, faults.delays.get(None, 0))
            if late and time.monotonic() - waited > late:  # many at once are late together
                self.owner.harmed["late"] += 1
                time.sleep(late)
                waited = time.monotonic()
            self.wait_while_stalled()
            if self.connection not in self.owner.live:
                raise OSError("cut")  # nobody is there to be told
            if self.connection in self.owner.silent:
                continue
            is_list = b"initial-events-end" in line
            if not is_list and faults.take(faults.expired, self.kind):
                self.chunk(json.dumps(EXPIRED).encode() + b"\n")
                break
            self.chunk(line)
            if held:
                self.owner.harmed["doubled"] += 1
                self.chunk(held)
            held = line if faults.has(faults.doubled, self.kind) and not is_list else None
        self.link.close()
        self.chunk(b"")


class Relay:
    """Bytes between a program and the API server, whatever they mean."""

    def __init__(self, cluster):
        self.port = cluster.port
        self.stalled = set()
        self.pairs = []
        self.opened = 0
        self.gone = False
        self.ended = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.settimeout(POLL_SECONDS)
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.cut()
        self.listener.close()

    def accept(self):
        while not self.ended:
            try:
                near, _ = self.listener.accept()
                if self.gone:
                    reset(near)
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self.port))
            except (TimeoutError, ConnectionError):
                continue
            except OSError:
                return
            for sock in (near, far):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.opened += 1
            pair = (near, far)
            self.pairs.append(pair)
            threading.Thread(target=self.copy, args=(pair,), daemon=True).start()

    def copy(self, pair):
        other = {pair[0]: pair[1], pair[1]: pair[0]}
        try:
            while not self.ended:
                if pair in self.stalled:
                    time.sleep(POLL_SECONDS)
                    continue
                for sock in select.select(pair, [], [], POLL_SECONDS)[0]:
                    data = sock.recv(COPY_BYTES)
                    if not data:
                        return
                    other[sock].sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            for sock in pair:
                reset(sock)
                sock.close()
            if pair in self.pairs:
                self.pairs.remove(pair)

    def away(self):
        """Nobody is there: connections are reset, and new ones too."""
        self.gone = True
        self.cut()

    def back(self):
        self.gone = False

    def cut(self):
        """Resets all connections; new ones can be made."""
        for pair in list(self.pairs):
            for sock in pair:
                reset(sock)

    def stall(self):
        """The connections that there are stay open, and carry nothing any more. New ones do."""
        self.stalled.update(self.pairs)

    def flow(self):
        self.stalled.clear()
