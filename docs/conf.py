"""Settings of the documentation site (`make site`)."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

import contone  # noqa: E402  (the package is installed; only the extensions need the path)

project = "contone"
author = "The contone developers"
copyright = f"2026, {author}"
version = release = contone.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "made",  # docs/_ext/made.py: output of commands, embedded pages, a picture per method
]
exclude_patterns = ["_build", "_generated", "gallery/**/*.ipynb", "gallery/**/*.py", "**/sg_execution_times*"]
templates_path = ["_templates"]
highlight_language = "none"  # blocks say what they are; formulas in docstrings are no Python
suppress_warnings = ["config.cache"]

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3

# Reference
autosummary_generate = True
autodoc_typehints = "none"  # docstrings say types in words
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery: every example is run; one that fails fails the build.
sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples" / "gallery"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 60,
    "write_computation_times": False,  # its page loads scripts from another host
    "image_scrapers": ("matplotlib",),
    "default_thumb_file": str(HERE / "figures" / "manifold.png"),
}

# Pages
html_theme = "pydata_sphinx_theme"
html_title = f"contone {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "tutorial": [], "cli": []}
