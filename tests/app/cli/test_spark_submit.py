"""The script for spark-submit, run as a file of its own."""

import subprocess
import sys

import pytest

from tidings.app.cli import spark_submit


def submitted(*arguments, cwd):
    """Run the script as spark-submit does: its folder is first on the path."""
    line = [sys.executable, spark_submit.__file__, *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.slow
def test_the_arguments_are_those_of_run(example):
    result = submitted("pipeline.toml", "--engine", "local", "--json", cwd=example.parent)
    assert (result.returncode, result.stderr) == (0, "")
    assert '"events": 30' in result.stdout


@pytest.mark.slow
def test_an_error_names_the_command(tmp_path):
    result = submitted(cwd=tmp_path)
    assert result.returncode == 2
    assert "Usage: tidings run [OPTIONS]" in result.stderr
