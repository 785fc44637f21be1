"""The documentation site builds without a warning, and its sidebar has every page."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_site_builds_and_its_sidebar_has_every_page(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs"]
    folders = ["-d", str(tmp_path / "doctrees"), ".", str(tmp_path / "site")]
    subprocess.run([*command, *folders], cwd=ROOT, check=True)
    first = (tmp_path / "site/README.html").read_text(encoding="utf-8")
    for page in ROOT.glob("docs/**/*.md"):
        address = page.relative_to(ROOT).with_suffix(".html").as_posix()
        assert f'class="reference internal" href="{address}"' in first
