"""Run the Python of pages and put what it prints below it.

python benchmarks/page_outputs.py [PAGE ...]    # by default README and all pages of doc/

The blocks of a page run one after another with common names, in an empty folder. A block marked `text` right
below one of Python is what that prints. Two comments of a page are read, which readers do not see:
`<!-- run first:` and Python up to `-->` runs before what follows; `<!-- not run: why -->` above a block
leaves it out.
"""

import io
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parents[1]

PART = re.compile(
    r"^<!-- run first:\n(?P<first>.*?)^-->$"
    r"|^(?P<skip><!-- not run: [^\n]+ -->\n+)?"
    r"```python\n(?P<code>.*?)^```$(?P<printed>\n+```text\n.*?^```$)?",
    re.MULTILINE | re.DOTALL,
)
"""Python of a page: hidden, or shown with what it prints."""


def pages() -> Iterator[Path]:
    """Yield README and the pages of the site that hold Python."""
    for page in (ROOT / "README.md", *sorted((ROOT / "doc").rglob("*.md"))):
        if not {"auto_gallery", "generated"} & set(page.parts) and PART.search(
            page.read_text(encoding="utf-8")
        ):
            yield page


def run_page(page: Path) -> str:
    """Return the text of a page with what its blocks print now."""
    names: dict[str, object] = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")

    def run(found: re.Match[str]) -> str:
        if found["skip"]:
            return found[0]
        start = found.start("first" if found["code"] is None else "code")
        line = text.count("\n", 0, start)
        code = found["code"] if found["first"] is None else found["first"]
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(
                compile("\n" * line + code, str(page), "exec"), names
            )  # tracebacks name the line of the page
        if not found["printed"]:
            return found[0]
        lines = "\n".join(each.rstrip() for each in printed.getvalue().rstrip().splitlines())
        return f"{found[0].removesuffix(found['printed'])}\n\n```text\n{lines}\n```"

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return PART.sub(run, text)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]) if sys.argv[1:] else pages():
        path.write_text(run_page(path.resolve()), encoding="utf-8")
