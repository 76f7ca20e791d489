"""OpenML, played by a server on the loopback: what it answers, refuses, and where it is not there."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import _openml

from riskbayes.cli import main
from riskbayes_paper import datasets
from riskbayes_paper.rows import read_folder

rng = np.random.default_rng(0)
LABELS = np.array(["M", "R"])[np.arange(60) % 2]
X = np.round(rng.normal(size=(60, 2)) + 2 * (LABELS == "M")[:, None], 3)
KINDS = np.array(["u", "v"])[rng.integers(2, size=60)]
KINDS[5] = "?"
ARFF = (
    "@relation sonar\n@attribute a numeric\n@attribute b numeric\n@attribute kind {u,v}\n"
    "@attribute Class {M,R}\n@data\n"
    + "".join(f"{a},{b},{kind},{label}\n" for (a, b), kind, label in zip(X, KINDS, LABELS, strict=True))
).encode()


def feature(index, name, kind, target="false", missing=0):
    return {
        **{"index": str(index), "name": name, "data_type": kind, "is_target": target},
        **{"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": str(missing)},
    }


def answers(address, md5=None):
    """What OpenML says of the set 40, by path."""
    described = {
        **{"id": "40", "name": "sonar", "version": "1", "description": "", "format": "ARFF"},
        **{"status": "active", "md5_checksum": md5 or hashlib.md5(ARFF).hexdigest()},
        "url": f"{address}/data/v1/download/40/sonar.arff",
    }
    features = [
        feature(0, "a", "numeric"),
        feature(1, "b", "numeric"),
        feature(2, "kind", "nominal", missing=1),
    ]
    features.append(feature(3, "Class", "nominal", "true"))
    quality = [{"name": "NumberOfInstances", "value": "60.0"}]
    return {
        "/api/v1/json/data/40": json.dumps({"data_set_description": described}).encode(),
        "/api/v1/json/data/features/40": json.dumps({"data_features": {"feature": features}}).encode(),
        "/api/v1/json/data/qualities/40": json.dumps({"data_qualities": {"quality": quality}}).encode(),
        "/data/v1/download/40/sonar.arff": ARFF,
    }


@contextmanager
def served(status, content):
    """A server: `content` gives the answers by path, `status` that of each answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            body = answered.get(self.path)
            self.send_response(404 if body is None else status)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_):
            pass

    asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    address = f"http://127.0.0.1:{server.server_address[1]}"
    answered = content(address)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield address, asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def openml(monkeypatch, tmp_path):
    """Send scikit-learn's requests to an address, keep what it caches here, and do not wait."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RISKBAYES_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    waits = []
    monkeypatch.setattr(_openml.time, "sleep", waits.append)

    def use(address):
        for name in ("_DATA_INFO", "_DATA_FEATURES", "_DATA_QUALITIES"):
            path = getattr(_openml, name).removeprefix("https://www.openml.org")
            monkeypatch.setattr(_openml, name, address + path)

    return use


def reproduce(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def unused_address():
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return f"http://127.0.0.1:{server.server_address[1]}"


def test_a_set_of_openml(openml, tmp_path):
    with served(200, answers) as (address, asked):
        openml(address)
        found = datasets.load("sonar")
        assert sorted(set(asked)) == sorted(answers(address))
    assert found.source == "OpenML"
    assert found.X[:, :2].tolist() == X.tolist()
    assert found.X[:, 2].tolist() == [
        {"u": 0, "v": 1, "?": 2}[kind] for kind in KINDS
    ]  # missing: one of its own
    assert found.y.tolist() == [0, 1] * 30
    again = datasets.load("sonar")  # from the disk: the server is gone
    assert again.X.tolist() == found.X.tolist()


def test_the_command_runs_on_openml(openml, tmp_path):
    pytest.importorskip("matplotlib")
    with served(200, answers) as (address, _):
        openml(address)
        result = reproduce(
            "--sets", "sonar", "--splits", 1, "--models", "nb", "--learners", "closed_form", "--jobs", 1
        )
    assert result.exit_code == 0, result.output
    assert {row.source for row in read_folder(tmp_path / "results")} == {"OpenML"}


@pytest.mark.parametrize(
    ("status", "words"),
    [(500, "OpenML answered 500 Internal Server Error"), (412, "OpenML has no data set 40")],
)
def test_openml_answers_with_an_error(openml, status, words):
    with served(status, answers) as (address, _):
        openml(address)
        with pytest.raises(datasets.Missing) as caught:
            datasets.load("sonar")
    assert str(caught.value).startswith(f"sonar: {words}; put sonar_207_scaled.csv.gz into a folder")
    assert str(caught.value).count(". ") == 0


@pytest.mark.parametrize(
    "content",
    [
        lambda address: answers(address, md5="0" * 32),
        lambda address: dict.fromkeys(answers(address), b"<html>Log in to the network</html>"),
        lambda address: dict.fromkeys(answers(address), b"{}"),
        lambda address: dict.fromkeys(answers(address), b""),
        lambda address: answers(address) | {"/data/v1/download/40/sonar.arff": ARFF[:200]},
    ],
)
@pytest.mark.filterwarnings("ignore:Invalid cache, redownloading")
def test_openml_answers_with_something_else(openml, content):
    with served(200, content) as (address, _):
        openml(address)
        with pytest.raises(datasets.Missing, match="sonar: what OpenML sent cannot be read ") as caught:
            datasets.load("sonar")
    assert "; put sonar_207_scaled.csv.gz into a folder" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_openml_cannot_be_reached(openml):
    openml(unused_address())
    with pytest.raises(datasets.Missing) as caught:
        datasets.load("sonar")
    assert str(caught.value).startswith(
        "sonar: OpenML cannot be reached (Connection refused); put sonar_207_scaled"
    )
    assert datasets.load("iris").source == "scikit-learn"


def test_a_server_that_is_not_there_is_not_asked_for_every_set(openml, monkeypatch):
    openml(unused_address())
    asked = []

    def fetch(data_id, **options):
        asked.append(data_id)
        return _openml.fetch_openml(data_id=data_id, **options)

    monkeypatch.setattr(datasets, "fetch_openml", fetch)
    result = reproduce("--sets", "sonar,vehicle,qsar")
    assert result.exit_code == 2
    assert asked == [40]
    lines = result.stderr.splitlines()
    assert [line.split(":")[:2] for line in lines[:3]] == [
        ["Missing", f" {s}"] for s in ("sonar", "vehicle", "qsar")
    ]
    assert all("OpenML cannot be reached" in line for line in lines[:3])
    assert lines[3:] == ["Error: None of the data sets can be had."]
