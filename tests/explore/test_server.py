"""The server of `riskbayes explore`: one page for this machine, and nothing for anybody else."""

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from click.testing import CliRunner

from riskbayes.cli import main
from riskbayes.explore import server as server_module
from riskbayes.explore.page import explore_page
from riskbayes.explore.server import LOOPBACK, MOST_AT_ONCE, PageServer

CLOSED = (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(server_module.PageHandler, "timeout", 1.0)
    with PageServer("<p>page</p>") as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def ask(server, method="GET", path="/", body=None, host=None, **headers):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(LOOPBACK, server.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        if host != "":
            connection.putheader("Host", host or f"{LOOPBACK}:{server.port}")
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def raw(server, sent):
    """What comes back for bytes; empty if the connection was closed."""
    with socket.create_connection((LOOPBACK, server.port), timeout=10) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except CLOSED:
            return b""


def test_the_page_is_served_to_this_machine_only(server):
    assert server.server_address[0] == LOOPBACK
    for host in (None, f"localhost:{server.port}"):
        status, headers, body = ask(server, host=host)
        assert (status, body) == (200, b"<p>page</p>")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Python" not in headers["Server"]
    status, headers, body = ask(server, "HEAD")
    assert (status, headers["Content-Length"], body) == (200, "11", b"")


@pytest.mark.parametrize(
    "host", ["evil.example", "", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example:80"]
)
def test_another_host_is_refused(server, host):
    assert ask(server, host=host)[0] == 421


def test_two_hosts_are_refused(server):
    sent = f"GET / HTTP/1.1\r\nHost: {LOOPBACK}:{server.port}\r\nHost: evil.example\r\n\r\n"
    assert raw(server, sent.encode()).startswith(b"HTTP/1.0 421")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", ""])
def test_another_origin_is_refused(server, origin):
    assert ask(server, Origin=origin)[0] == 403
    assert ask(server, Origin=server.address.rstrip("/"))[0] == 200


@pytest.mark.parametrize("path", ["/x", "/../etc/passwd", "/?a", "*", "http://evil.example/", "/%2e%2e"])
def test_there_is_one_path(server, path):
    assert ask(server, path=path)[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH"])
def test_there_is_nothing_to_change(server, method):
    assert ask(server, method)[0] == 501


def test_bodies_are_refused_unread(server):
    assert ask(server, Content_Length="5", body=b"12345")[0] == 413
    assert ask(server, Content_Length=str(10**12))[0] == 413
    assert ask(server, Content_Length="-1")[0] == 413
    assert ask(server, Transfer_Encoding="chunked")[0] == 413
    start = time.perf_counter()
    head = f"POST / HTTP/1.1\r\nHost: {LOOPBACK}:{server.port}\r\nContent-Length: 50000000\r\n\r\n".encode()
    answer = raw(server, head + b"x" * 50_000_000)  # the connection is closed while this is sent
    assert answer == b"" or answer.startswith(b"HTTP/1.0 501")
    assert time.perf_counter() - start < 30
    assert ask(server)[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\r\n\r\n",
        b"nonsense\r\n\r\n",
        b'{"json": \r\n\r\n',
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1 more\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\xff: \x00\x1b[31m\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        b"GET /\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(server, sent, capfd):
    answer = raw(server, sent)
    assert b"page" not in answer
    assert answer == b"" or re.match(rb"(HTTP/1\.0 )?[45]\d\d ", answer)
    assert ask(server)[0] == 200
    assert capfd.readouterr() == ("", "")


def test_a_thousand_quick_requests_are_answered_or_refused_and_threads_are_bounded(server):
    others, most = set(threading.enumerate()), []  # scikit-learn's callbacks leave threads in the process

    def one(_):
        try:
            status = ask(server)[0]
        except CLOSED:
            status = None
        new = set(threading.enumerate()) - others
        most.append(sum(not thread.name.startswith("client") for thread in new))
        return status

    with ThreadPoolExecutor(40, "client") as pool:
        statuses = list(pool.map(one, range(1000)))
    assert set(statuses) <= {200, None}
    assert statuses.count(200) > 0
    assert max(most) <= MOST_AT_ONCE
    time.sleep(0.1)
    assert ask(server)[0] == 200
    assert len(set(threading.enumerate()) - others) <= 1


def test_silent_connections_are_bounded_and_let_go(server):
    silent = [socket.create_connection((LOOPBACK, server.port)) for _ in range(3 * MOST_AT_ONCE)]
    for connection in silent:
        connection.settimeout(10)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""  # closed: at once where there is no room, else after the timeout
        connection.close()
    assert ask(server)[0] == 200


def test_the_command_serves_the_page_until_ctrl_c(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "riskbayes", "explore"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            line = process.stdout.readline()
            port = int(re.fullmatch(r"The page: http://127\.0\.0\.1:(\d+)/ \(Ctrl-C ends it\)\n", line)[1])
            connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
            connection.request("GET", "/")
            assert connection.getresponse().read().decode() == explore_page()
        finally:
            process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=20)
    assert (process.returncode, *rest) == (130, "", "")


def test_the_command_writes_the_page_and_names_a_port_that_is_taken(tmp_path):
    out = tmp_path / "explore.html"
    result = CliRunner().invoke(main, ["explore", "--out", str(out)])
    assert result.stdout == f"The page: {out}\n"
    assert out.read_text(encoding="utf-8") == explore_page()
    assert CliRunner().invoke(main, ["explore", "--out", str(tmp_path)]).exit_code == 2
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(main, ["explore", "--port", str(port)])
    assert result.exit_code == 1
    assert f"Cannot serve on port {port}: Address already in use." in result.stderr
