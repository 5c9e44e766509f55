# SPDX-License-Identifier: Apache-2.0
"""A real `drover serve` on a free port; answers are held to its openapi.json."""

import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time

import drover


def matches(schema, value, components, path="$"):
    """What is wrong with value by the part of JSON Schema that is used; "" if nothing."""
    if "$ref" in schema:
        found = components
        for part in schema["$ref"].removeprefix("#/components/schemas/").split("/"):
            found = found[part]
        return matches(found, value, components, path)
    types = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None),
             "integer": int, "number": (int, float)}
    wanted = schema.get("type")
    if wanted is not None:
        good = False
        for one in wanted if isinstance(wanted, list) else [wanted]:
            truth = isinstance(value, bool) and one != "boolean"  # to Python 1 as well
            good = good or (isinstance(value, types[one]) and not truth)
        if not good:
            return f"{path}: found {value!r}, the schema says {wanted}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{path}: found {value!r}, the schema says {schema['enum']}"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return f"{path}: too short"
        if "pattern" in schema and not re.search(schema["pattern"], value):
            return f"{path}: {value!r} does not match {schema['pattern']}"
        if schema.get("format") == "date-time" and not re.fullmatch(
                r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value):
            return f"{path}: {value!r} is no date-time"
    if isinstance(value, int) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            return f"{path}: {value} is out of range"
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            problem = matches(schema["items"], item, components, f"{path}[{index}]")
            if problem:
                return problem
    if isinstance(value, dict):
        return members(schema, value, components, path)
    return ""


def members(schema, value, components, path):
    for name in schema.get("required", []):
        if name not in value:
            return f"{path}: {name} is missing"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            problem = matches(properties[name], item, components, f"{path}.{name}")
        elif others is False:
            problem = f"{path}: {name} is not in the schema"
        elif isinstance(others, dict):
            problem = matches(others, item, components, f"{path}.{name}")
        else:
            problem = ""
        if problem:
            return problem
    return ""


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        try:
            return self.json["error"]["code"]
        except (ValueError, KeyError, TypeError):
            return None

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:2000]!r}"


class Server:
    """Starts in a folder of its own unless told which; use as a context."""

    def __init__(self, program, *words, folder=None):
        self.program = str(program)
        self.words = words
        self.temporary = None if folder else tempfile.TemporaryDirectory(prefix="drover-test-")
        self.folder = pathlib.Path(folder or self.temporary.name) / "data"
        self.process = None
        self.port = 0
        self.openapi = None
        self.called = set()  # operations that answered well
        self.wrong = []      # answers that contradict the document

    def start(self):
        environment = dict(os.environ, LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(
            [self.program, "serve", "--data", str(self.folder), "--listen",
                f"127.0.0.1:{self.port}",
             *self.words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
        line = self.process.stdout.readline().decode()
        match = re.search(r":(\d+), data", line)
        if not match:
            raise RuntimeError(f"drover serve did not start: {line!r}")
        self.port = int(match.group(1))
        self.token = (self.folder / "admin-token").read_text().strip()
        if self.openapi is None:
            self.openapi = json.loads(self.request("GET", "/api/v1/openapi.json", check=False).body)
        return self

    def stop(self, number=signal.SIGTERM):
        """The exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.stdout.close()
        return self.process.wait(timeout=30)

    def __enter__(self):
        return self.start()

    def __exit__(self, *unused):
        if self.process:
            self.stop()
        if self.temporary:
            self.temporary.cleanup()

    def request(self, method, path, body=None, token="", headers=None, check=True):
        """token: empty is the administrator's, None is none. A body that is no text is JSON."""
        sent = dict(headers or {})
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        if body is not None and not isinstance(body, (str, bytes)):
            body = json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=sent)
            response = connection.getresponse()
            answer = Answer(response.status, response.headers,
                            response.read().decode("utf-8", "replace"))
        finally:
            connection.close()
        if check:
            self.check(method, path, answer)
        return answer

    def operation(self, method, path):
        parts = path.split("?")[0].split("/")
        best = None
        for pattern, item in self.openapi["paths"].items():
            wanted = pattern.split("/")
            fits = len(wanted) == len(parts) and all(
                one.startswith("{") or one == other for one, other in zip(wanted, parts))
            if fits and method.lower() in item and (best is None or "{" not in pattern):
                best = item[method.lower()]
        return best

    def check(self, method, path, answer):
        """Holds an answer to openapi.json."""
        operation = self.operation(method, path)
        if operation is None:
            return
        described = operation["responses"].get(str(answer.status),
            operation["responses"]["default"])
        if answer.status < 300:
            self.called.add(operation["operationId"])
            if str(answer.status) not in operation["responses"]:
                self.wrong.append(f"{method} {path}: the status {answer.status} is not described")
        content = described.get("content", {})
        kind = answer.headers.get("Content-Type", "")
        if kind not in content:
            self.wrong.append(f"{method} {path}: {answer.status} {kind!r} is not described")
        elif kind == "application/json":
            problem = matches(content[kind]["schema"], answer.json,
                              self.openapi["components"]["schemas"])
            if problem:
                self.wrong.append(f"{method} {path}: {answer.status}: {problem}")

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def raw(self, text, timeout=60):
        """Sends bytes as they are; everything that comes until the other side closes."""
        with self.connect() as connection:
            connection.settimeout(timeout)
            connection.sendall(text if isinstance(text, bytes) else text.encode())
            data = b""
            try:
                while True:
                    more = connection.recv(65536)
                    if not more:
                        break
                    data += more
            except (TimeoutError, ConnectionResetError):
                pass
            return data.decode("utf-8", "replace")


class Cli:
    """The commands of a server's program, against that server."""

    def __init__(self, tap, server):
        self.tap = tap
        self.server = server

    def run(self, *words, **more):
        return drover.run(self.server.program, *words, "--data", self.server.folder, **more)

    def expect(self, name, status, *words, out="", err="", **more):
        result = self.run(*words, **more)
        good = result.status == status and out in result.out and err in result.err
        self.tap.test(name, None if good else repr(result))
        return result


def wait_for(condition, seconds=30):
    """The first true value, or the last false one."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)
