#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard's files as a real server gives them, and the links that open it. TAP."""

import gzip
import http.client
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import drover  # pylint: disable=wrong-import-position
import server as servers  # pylint: disable=wrong-import-position

WIRE_BYTES_MOST = 80 * 1024  # for the first view
ADDRESS = re.compile(r"https?:")
# What is named in files but never asked for.
NAMES_ONLY = ("http://www.w3.org/", "https://reactjs.org/", "https://preactjs.com")


def fetch(server, method, path, **headers):
    """Status, headers, bytes as they came; no token."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value
                                                  for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def page(tap, server):
    status, headers, packed = fetch(server, "GET", "/")
    text = gzip.decompress(packed).decode() if status == 200 else ""
    policy = headers.get("Content-Security-Policy", "")
    tap.test("the page needs no token", None if "<title>Drover" in text else (status, packed))
    tap.test("it may load nothing from elsewhere and nothing inline",
             None if "default-src 'none'" in policy and "script-src 'self';" in policy
             and "unsafe" not in policy and "frame-ancestors 'none'" in policy else policy)
    tap.test("its type is not guessed, and no address is passed on",
             None if headers.get("X-Content-Type-Options") == "nosniff"
             and headers.get("Referrer-Policy") == "no-referrer" else headers)
    tap.test("nothing in it is inline", "<style" in text or re.search(r"<script[^>]*>[^<]", text)
             or " style=" in text or re.search(r" on\w+=", text))
    status, headers2, body = fetch(server, "GET", "/", If_None_Match=headers.get("ETag", ""))
    tap.test("it is asked for again, but sent only when it is another",
             None if status == 304 and body == b"" and headers.get("Cache-Control") == "no-cache"
             else (status, headers2))
    status, _, body = fetch(server, "HEAD", "/")
    tap.test("HEAD", None if status == 200 and body == b"" else status)
    status, headers, _ = fetch(server, "POST", "/")
    tap.test("it takes nothing", None if status == 405 and headers["Allow"] == "GET, HEAD"
             else status)
    return text, len(packed)


def parts(tap, server, text, wire):
    paths = re.findall(r'(?:src|href)="(/[^"]*)"', text)
    tap.test("it has a script and a style", None if len(paths) >= 2 else text)
    for path in paths:
        status, headers, packed = fetch(server, "GET", path)
        wire += len(packed)
        plain = gzip.decompress(packed).decode("utf-8", "replace") if status == 200 else ""
        tap.test(f"{re.sub('-.*[.]', '-*.', path)} is kept for ever under its name",
                 None if status == 200 and "immutable" in headers["Cache-Control"]
                 and headers["X-Content-Type-Options"] == "nosniff" else (status, headers))
        elsewhere = [plain[m.start():m.start() + 60] for m in ADDRESS.finditer(plain)
                     if not plain[m.start():].startswith(NAMES_ONLY)]
        tap.test("and names no other server", elsewhere)
    tap.test(f"the first view is {wire} bytes on the wire, allowed {WIRE_BYTES_MOST}",
             "too much" if wire > WIRE_BYTES_MOST else None)
    status, _, _ = fetch(server, "GET", "/assets/index-none.js")
    tap.test("what is not there needs a token to be told so", None if status == 401 else status)
    status, _, _ = fetch(server, "GET", "/", Host="evil.example")
    tap.test("another Host is refused", None if status == 421 else status)
    status, _, _ = fetch(server, "GET", "/", Sec_Fetch_Site="cross-site")
    tap.test("another site is refused", None if status == 403 else status)


def links(tap, program, server):
    result = drover.run(program, "dashboard", "--data", server.folder)
    match = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#code=([\w-]{20,})\n", result.out)
    tap.test("drover dashboard prints a link", None if match and int(match[1]) == server.port
             else result)
    code = match[2] if match else ""
    answer = server.request("POST", "/api/v1/login", {"code": code}, token=None)
    tap.test("its code is good", None if answer.status == 200 else answer)
    info = server.request("GET", "/api/v1/info", token=answer.json.get("token", "x"))
    tap.test("for the rights of who asked", None if info.json.get("role") == "admin" else info)
    again = server.request("POST", "/api/v1/login", {"code": code}, token=None)
    tap.test("and once only", None if again.status == 401 else again)
    journal = server.request("GET", "/api/v1/journal?limit=1000").body
    tap.test("neither code nor token is in the journal",
             code in journal or answer.json.get("token", "x") in journal)


def said(program, *words, terminal):
    """What drover serve says until its greeting is whole, on a terminal or not.

    A terminal gets it line by line: the last line is the link, or how to get one.
    """
    with tempfile.TemporaryDirectory(prefix="drover-test-") as folder:
        command = [str(program), "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0",
                   *words]
        reader, writer = pty.openpty() if terminal else os.pipe()
        with subprocess.Popen(command, stdout=writer, stderr=subprocess.DEVNULL) as process:
            os.close(writer)
            text = ""
            while not re.search(r'dashboard" prints a link|/#code=[\w-]+\s', text):
                more = os.read(reader, 65536)
                if not more:
                    break
                text += more.decode()
            process.terminate()
            process.wait(timeout=30)
        os.close(reader)
        return text


def greetings(tap, program):
    text = said(program, terminal=False)
    tap.test("what is kept in a log has no code in it", text if "#code=" in text else None)
    for name, text in (("a terminal", said(program, terminal=True)),
                       ("the demo", said(program, "--demo", terminal=False))):
        tap.test(f"{name} shows the link", None if re.search(r"http://127[^ ]*/#code=", text)
                 else text)


def lock_file(tap):
    lock = (drover.ROOT / "web" / "package-lock.json").read_text()
    tap.test("the dashboard's packages are pinned, and no server is named",
             None if '"integrity": "sha512-' in lock and "://" not in lock else "see the file")


def main():
    tap = drover.Tap()
    lock_file(tap)
    for program in drover.programs():
        with servers.Server(program) as server:
            text, wire = page(tap, server)
            parts(tap, server, text, wire)
            links(tap, program, server)
        greetings(tap, program)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
