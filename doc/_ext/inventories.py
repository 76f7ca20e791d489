"""Names of other projects that pages link to, without asking their sites.

`_inventories/<project>.txt` has the address of a project's pages in its first line and below it one name a
line: the object's type, its full name, and the page below that address. Sphinx's intersphinx reads
inventories in a compressed form, which is written beside the build.
"""

import tempfile
import zlib
from pathlib import Path

HEADER = (
    "# Sphinx inventory version 2\n# Project: {0}\n# Version: \n"
    "# The remainder of this file is compressed using zlib.\n"
)


def known_inventories(here: Path) -> dict[str, tuple[str, str]]:
    """Return intersphinx's mapping of the projects in `_inventories`."""
    folder, found = Path(tempfile.mkdtemp(prefix="riskbayes-inventories-")), {}
    for listing in sorted((here / "_inventories").glob("*.txt")):
        address, *lines = listing.read_text(encoding="utf-8").split("\n")
        entries = [line.split() for line in lines if line]
        body = "".join(f"{name} {kind} 1 {page} -\n" for kind, name, page in entries)
        packed = folder / f"{listing.stem}.inv"
        packed.write_bytes(HEADER.format(listing.stem).encode() + zlib.compress(body.encode()))
        found[listing.stem] = (address, str(packed))
    return found
