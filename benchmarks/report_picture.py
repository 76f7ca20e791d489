"""The picture of a report on the landing page: the first screen of what `riskbayes compare` writes.

python benchmarks/report_picture.py        # needs Chromium; writes doc/report.png

The table is the sample of adult that ships with the package, as in `make demo`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from riskbayes.compare import compare
from riskbayes.compare.page import report_page
from riskbayes.datasets import load_adult_sample

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from browser import find_chromium  # noqa: E402

if __name__ == "__main__":
    report = compare(load_adult_sample(), "income", name="adult_sample.csv").report
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(report_page(report), encoding="utf-8")
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--window-size=1000,1050"]
        picture = f"--screenshot={ROOT / 'doc' / 'report.png'}"
        subprocess.run(
            [str(find_chromium()), *options, picture, page.as_uri()], check=True, capture_output=True
        )
