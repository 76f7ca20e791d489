"""Settings of the site, which `make docs` builds into `site/`. Nothing here asks the network."""

import os
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

from inventories import known_inventories  # noqa: E402

import riskbayes  # noqa: E402
from riskbayes.web import SITE  # noqa: E402

project = "riskbayes"
author = "The riskbayes developers"
copyright = author
release = version = riskbayes.__version__
language = "en"

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    "mathml",
    "site_files",
]
exclude_patterns = ["auto_gallery/*.md5", "auto_gallery/*.ipynb", "_inventories"]
templates_path = ["_templates"]
default_role = "code"  # single backticks in docstrings

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

intersphinx_mapping = known_inventories(HERE)
intersphinx_timeout = 1

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# Examples must not warn; the last line of a block is shown as a notebook would show it.
warnings.filterwarnings("ignore", message=".*non-interactive.*")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery"],
    "gallery_dirs": ["auto_gallery"],
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "plot_gallery": os.environ.get("RISKBAYES_GALLERY", "True"),
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "min_reported_time": 5,
    "image_scrapers": ("matplotlib",),
    "show_signature": False,
}

html_theme = "pydata_sphinx_theme"
html_baseurl = SITE
html_title = "riskbayes"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "riskbayes"},
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
