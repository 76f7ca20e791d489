"""Text as UTF-8: the encoding is detected line by line, whatever the size of the file.

A file is UTF-8, UTF-16 or UTF-32, or, where a line is not UTF-8, Windows-1252. It is decided by the first
line that is not ASCII; a later line that contradicts it is an error that says its number.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from riskbayes.input.files import UserError
from riskbayes.input.files.opening import EXPORT, UserFile

LONGEST_RECORD = 2**24
"""The most bytes of one line, or of one record with line breaks in quotes."""

MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
"""Encodings by the byte order mark; those of UTF-32 begin with those of UTF-16, so they come first."""


class Text:
    """The lines of a file as UTF-8 bytes."""

    def __init__(self, opened: UserFile, given: str | None = None):
        self.opened, self.given = opened, given
        self.encoding = "ascii"
        """What the lines so far are in: ascii, utf-8, cp1252, or that of a byte order mark."""
        self.since = 0
        """The first line that was not ASCII."""
        self.line = 1
        """The number of the next line."""

    def chunks(self, size: int) -> Iterator[bytes]:
        """Yield about `size` bytes at a time, each time whole lines; line breaks are as in the file.

        Carriage returns alone, if the beginning of the file has no other line breaks, become line feeds.
        """
        pieces = self.pieces(size)
        held = b""
        old_mac: bool | None = None
        for piece in pieces:
            if old_mac is None:
                old_mac = b"\r" in piece and b"\n" not in piece
            if old_mac:
                piece = piece.replace(b"\r", b"\n")
            cut = piece.rfind(b"\n") + 1
            if cut:
                yield self.checked(held + piece[:cut])
                held = piece[cut:]
            else:
                held += piece
            if len(held) > LONGEST_RECORD + size:
                raise UserError(
                    f"{self.opened.name}, line {self.line} is longer than {LONGEST_RECORD // 2**20} MB: it "
                    f"is no table in lines. {EXPORT}"
                )
        if held:
            yield self.checked(held)

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the bytes of the file, in UTF-8 if it has the byte order mark of another encoding."""
        start = self.opened.read(size)
        mark = next((mark for mark in MARKS if start.startswith(mark)), b"")
        encoding = self.given or MARKS.get(mark) or without_mark(start)
        start = start[len(mark) :]
        if encoding is None or (encoding == "utf-8" and not self.given):
            while start:
                yield start
                start = self.opened.read(size)
            return
        self.encoding = encoding
        decoder = codecs.getincrementaldecoder(encoding)()
        lines = 1
        while True:
            try:
                text = decoder.decode(start, final=not start)
                found = text.encode("utf-8")
            except UnicodeError:
                raise UserError(
                    f"{self.opened.name} begins as {encoding.upper()} and is something else or cut short "
                    f"after line {lines}. Save it in one encoding, UTF-8, or name it with --encoding."
                ) from None
            lines += found.count(b"\n")
            if found:
                yield found
            if not start:
                return
            start = self.opened.read(size)

    def checked(self, chunk: bytes) -> bytes:
        """Return whole lines as UTF-8; refuse NUL bytes and lines in another encoding than those before."""
        if (at := chunk.find(b"\0")) >= 0:
            number = self.line + chunk.count(b"\n", 0, at)
            raise UserError(
                f"{self.opened.name}, line {number} holds a NUL byte: the file is binary or damaged. {EXPORT}"
            )
        if self.encoding == "ascii" and not chunk.isascii():  # its first line that is not decides
            lines = enumerate(chunk.split(b"\n"), self.line)
            self.since, line = next((number, line) for number, line in lines if not line.isascii())
            self.encoding = "utf-8" if is_utf8(line) else "cp1252"
        if self.encoding == "cp1252":
            chunk = self.from_windows(chunk)
        elif self.encoding == "utf-8" and not chunk.isascii():
            try:
                chunk.decode("utf-8")
            except UnicodeDecodeError as error:
                raise self.mixed(self.line + chunk.count(b"\n", 0, error.start), "is no UTF-8") from None
        self.line += chunk.count(b"\n")
        return chunk

    def from_windows(self, chunk: bytes) -> bytes:
        """Return lines in Windows-1252 as UTF-8; refuse lines that are UTF-8 already."""
        if chunk.isascii():
            return chunk
        for number, line in enumerate(chunk.split(b"\n"), self.line):
            if not line.isascii() and is_utf8(line):
                raise self.mixed(number, "is UTF-8")
        return chunk.decode("cp1252", errors="latin-1 for what is left").encode("utf-8")

    def mixed(self, line: int, what: str) -> UserError:
        """Return the error for a file in more than one encoding."""
        other = "is" if what == "is no UTF-8" else "is not"
        return UserError(
            f"{self.opened.name} mixes encodings: line {line} {what}, and line {self.since} {other}. Save it "
            "in one encoding, UTF-8, or name it with --encoding."
        )


def is_utf8(line: bytes) -> bool:
    """True if the bytes are valid UTF-8."""
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def without_mark(start: bytes) -> str | None:
    """Return UTF-16 where every second byte of the beginning is zero, as in most texts without a mark."""
    head = start[:1024]
    if len(head) < 4 or b"\0" not in head:
        return None
    even, odd = head[0::2], head[1::2]
    zeros = even.count(0) / len(even), odd.count(0) / len(odd)
    if zeros[0] < 0.1 and zeros[1] > 0.9:
        return "utf-16-le"
    return "utf-16-be" if zeros[0] > 0.9 and zeros[1] < 0.1 else None


def latin_1(error: UnicodeError) -> tuple[str, int]:
    """Return the five bytes that Windows-1252 leaves open as those of Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("latin-1 for what is left", latin_1)
