"""Files are there whole or not at all: after a full disk, a closed pipe, a signal, a planted link."""

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import riskbayes
from riskbayes.cli import main
from riskbayes.new_files import new_files
from riskbayes.persistence.journal import Journal

pytest.importorskip("pyarrow")

from riskbayes.commands.compare import FILES, stored, write
from riskbayes.compare import compare
from riskbayes.input.files.table import read_table

SCRIPT = "from riskbayes.entry import main; main()"
TABLE = "x,colour,answer\n" + "\n".join(
    f"{i},{'blå' if i % 3 else 'rød'},{'yes' if i % 2 else 'no'}" for i in range(60)
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in, with a table."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(TABLE, encoding="utf-8")
    return tmp_path


def run(*arguments, **options):
    return CliRunner(**options).invoke(main, [str(each) for each in arguments])


@contextmanager
def room_for(size):
    """Let no file grow beyond so many bytes: what a full disk is to a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3000), min_size=1, max_size=4), st.integers(0, 3000))
def test_either_every_file_is_new_or_none_is(tmp_path_factory, sizes, room):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{i}" for i in range(len(sizes))]
    for path in paths[::2]:
        path.write_bytes(b"old")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    try:
        with room_for(room), new_files(*paths) as files:
            for file, size in zip(files, sizes, strict=True):
                file.write(b"n" * size)
        expected = {path.name: b"n" * size for path, size in zip(paths, sizes, strict=True)}
    except OSError:
        assert max(sizes) > room
        expected = before
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == expected


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match="no regular file"), new_files(tmp_path / "a", tmp_path / name):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


def test_a_full_disk_leaves_the_old_report_with_the_old_model(folder):
    read = read_table("t.csv", labels=["answer"])
    found = compare(read.table, "answer", name="t.csv")
    about = stored(found, read, "t.csv", [], 0)
    write(found, folder / "new", about)
    sizes = sorted((folder / "new" / name).stat().st_size for name in FILES)
    (folder / "out").mkdir()
    for name in FILES:
        (folder / "out" / name).write_text("old")
    for size in sizes:
        with room_for(size - 1), pytest.raises(OSError, match="File too large"):
            write(found, folder / "out", about)
        assert {path.name: path.read_text() for path in (folder / "out").iterdir()} == dict.fromkeys(
            FILES, "old"
        )


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (("compare", "t.csv", "--target", "answer", "--out", "out"), FILES),
        (("reproduce", "toy", "--out", "out/toy.svg"), ("toy.svg",)),
    ],
)
def test_a_reader_that_goes_away_loses_no_file(folder, monkeypatch, command, files):
    def gone(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr("rich.console.Console.print", gone)
    assert isinstance(run(*command).exception, BrokenPipeError | SystemExit)
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted(files)


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_output_that_knows_ascii_only(folder, options):
    Path("å.csv").write_text(TABLE, encoding="utf-8")
    found = run("compare", "å.csv", "--target", "answer", "--out", "out", *options, charset="ascii")
    assert (found.exit_code, found.exception) == (0, None), found.output
    assert found.stdout.isascii()
    assert {path.name for path in (folder / "out").iterdir()} == set(FILES)


@pytest.mark.parametrize(
    "command",
    [
        ("compare", "t.csv", "--target", "nothing", "--out", "some/out"),
        ("compare", "none.csv", "--target", "answer", "--out", "some/out"),
        ("fit", "t.csv", "--target", "nothing", "-o", "some/m.rb"),
        ("predict", "none.rb", "t.csv", "-o", "some/out.csv"),
        ("reproduce", "report", ".", "--out", "some/out"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_mistake_leaves_no_folder(folder, command):
    assert run(*command).exit_code == 2
    assert [path.name for path in folder.iterdir()] == ["t.csv"]


def test_planted_links_are_not_followed(folder):
    """At the names that were used before, which can be foreseen."""
    victim = folder / "victim"
    victim.write_text("precious")
    for name in (f".out.csv.{os.getpid()}.part", "p.parquet.part", "checkpoint.part", "model.rb.part"):
        (folder / name).symlink_to(victim)
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2
    clf = riskbayes.GaussianNB(learner="closed_form").fit(X, y, checkpoint="checkpoint")
    clf.predict_to(X, "p.parquet")
    assert run("fit", "t.csv", "--target", "answer", "-o", "model.rb").exit_code == 0
    assert run("predict", "model.rb", "t.csv", "-o", "out.csv").exit_code == 0
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_leaves_no_part_of_a_file(folder, number):
    assert run("fit", "t.csv", "--target", "answer", "-o", "m.rb").exit_code == 0
    path = os.pathsep.join([str(Path(riskbayes.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", SCRIPT, "predict", "m.rb", "-", "-o", "out.csv"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as process:
        process.stdin.write(("x,colour\n" + "1,rød\n" * 2**20).encode())
        process.stdin.flush()
        for _ in range(300):
            if list(folder.glob(".out.csv*")):
                break
            time.sleep(0.1)
        process.send_signal(number)
        process.stdin.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (128 + number, b"")
    assert sorted(each.name for each in folder.iterdir()) == ["m.rb", "t.csv"]


def test_a_process_that_is_killed_leaves_no_spooled_rows(tmp_path):
    spool, path = tmp_path / "spool", str(Path(riskbayes.__file__).parents[1])
    spool.mkdir()
    script = f"""
import sys, time
from riskbayes.engines.spool import Spool
spool = Spool({str(spool)!r})
spool.write([1, 2, 3])
print("written", flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": path},
    ) as process:
        assert process.stdout.readline() == b"written\n"
        assert any(spool.iterdir())
        process.send_signal(signal.SIGTERM)
    for _ in range(100):
        if not any(spool.iterdir()):
            break
        time.sleep(0.1)
    assert not any(spool.iterdir())


def test_of_two_fits_on_one_checkpoint_one_goes_on(tmp_path):
    first, second = Journal(tmp_path / "file"), Journal(tmp_path / "file")
    first.add("a", b"1")
    with pytest.raises(ValueError, match="Another fit writes to the checkpoint"):
        second.add("a", b"2")
    first.add("b", b"3")
    found = Journal(tmp_path / "file")
    assert (found.get("a"), found.get("b")) == (b"1", b"3")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
