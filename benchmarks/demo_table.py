"""The table of `riskbayes demo` over more splits than the demo has time for, written into a Markdown page.

python benchmarks/demo_table.py --splits 5 --doc README.md
"""

import argparse
from pathlib import Path

from riskbayes.demo.experiment import run_demo
from riskbayes.demo.page import error_table, tally
from riskbayes_paper.tables import markdown_rows

BEGIN, END = (f"<!-- {part}: made by `python benchmarks/demo_table.py` -->" for part in ("begin", "end"))


def main() -> None:
    """Run the demo, print its table in Markdown, and put it between the marks of a page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--doc", type=Path, help="a page with the marks")
    options = parser.parse_args()
    results = run_demo(n_splits=options.splits)
    part = f"{markdown_rows(error_table(results))}\n\n{tally(results)} Means over {options.splits} splits."
    print(part)
    if options.doc is not None:
        text = options.doc.read_text(encoding="utf-8")
        before, after = text[: text.index(BEGIN)], text[text.index(END) :]
        options.doc.write_text(f"{before}{BEGIN}\n\n{part}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
