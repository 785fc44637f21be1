"""A copy of the example that a run may write to."""

import pytest
from tests.app.cli.commands import EXAMPLE


@pytest.fixture
def example(tmp_path):
    for path in EXAMPLE.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path / "pipeline.toml"
