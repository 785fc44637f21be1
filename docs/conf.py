"""Sphinx configuration of the site: README.md, docs/ and the other pages of the repository.

`make docs` builds it. The root of the repository is the source folder, so that the same relative
links work on the site, in an editor and on a code host.
"""

from sphinx.application import Sphinx

# In the order of the sidebar. Markdown has no syntax for a sidebar, so the first page gets it while
# it is read.
PAGES = {
    "For users": [
        "digest",
        "web-app",
        "service",
        "channels",
        "mail",
        "page",
        "policies",
        "spark",
        "pipeline",
        "sources",
        "operations",
        "capacity",
        "lab",
        "thesis",
        "papers",
        "papers-report",
    ],
    "Reference": ["semantics", "files", "limits"],
    "Internals": ["spark", "index-files", "indexes", "fanout", "windows", "diversity", "covers"],
    "The project": ["ARCHITECTURE", "CONTRIBUTING", "CHANGELOG"],
}
FOLDERS = {"Internals": "docs/internals/", "The project": ""}

project = "Tidings"
author = "The Tidings developers"
copyright = author  # noqa: A001 - Sphinx reads this name

root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "bench/results/*.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 3  # links such as pipeline.md#source
suppress_warnings = [
    "toc.not_included",  # pages that only others link to, such as results of benchmarks
    "myst.xref_missing",  # links to files that are not pages; tests/test_documents.py checks them
]

html_theme = "furo"
html_title = "Tidings"
html_copy_source = False


def add_sidebar(_app: Sphinx, page: str, source: list[str]) -> None:
    """Append the table of contents to the first page."""
    if page == root_doc:
        for caption, names in PAGES.items():
            entries = "\n".join(FOLDERS.get(caption, "docs/") + name for name in names)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def setup(app: Sphinx) -> None:
    """Register with Sphinx."""
    app.connect("source-read", add_sidebar)
