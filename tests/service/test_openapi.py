"""The OpenAPI description is true: requests that are made from it get the documented answers."""

import json
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.service.running import client_of, pipeline_at, server_at

from tidings.store import open_store

# A condition or a policy that fits its schema may still make no sense.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = [200, 201, 202, 404, 409, 422]
"""
PATHS = {
    "/health",
    "/metrics",
    "/v1/attributes",
    "/v1/conditions:check",
    "/v1/decisions/{subscriber}",
    "/v1/events",
    "/v1/explain",
    "/v1/feeds/{subscriber}",
    "/v1/me",
    "/v1/letters",
    "/v1/letters:retry",
    "/v1/notifications/{subscriber}",
    "/v1/notifications/{subscriber}/read",
    "/v1/operations",
    "/v1/operations/conditions",
    "/v1/preview",
    "/v1/subscribers",
    "/v1/subscribers/{id}",
    "/v1/subscriptions",
    "/v1/subscriptions/{id}",
    "/v1/subscriptions:export",
    "/v1/subscriptions:import",
    "/v1/target",
}


def test_all_paths_are_described(tmp_path: Path) -> None:
    with server_at(str(tmp_path / "t.db")) as server, client_of(server) as client:
        description = client.get("/openapi.json").json()
        assert set(description["paths"]) >= PATHS
        assert client.get("/docs").status_code == 200
        assert allowed(client, "/v1/subscribers/ada") == "DELETE, GET, PUT"


def test_every_schema_that_is_named_is_there(tmp_path: Path) -> None:
    with server_at(str(tmp_path / "t.db")) as server, client_of(server) as client:
        text = client.get("/openapi.json").text
    named = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert named - json.loads(text)["components"]["schemas"].keys() == set()


def allowed(client: httpx2.Client, path: str) -> str:
    answer = client.patch(path)
    assert answer.status_code == 405
    return str(answer.headers["allow"])


@pytest.mark.fuzz
def test_no_answer_is_undocumented(tmp_path: Path) -> None:
    """Run schemathesis with all its checks."""
    address, config = str(tmp_path / "t.db"), tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    with open_store(address) as store:
        token = store.tokens.create("admin", 1)
    with server_at(address) as server, pipeline_at(address):
        program = str(Path(sys.executable).with_name("schemathesis"))
        command = [program, "--config-file", str(config), "run"]
        options = ["--checks", "all", "--max-examples", "4", "--seed", "1"]
        options += ["--exclude-path-regex", "stream$"]  # which has no end
        options += ["--request-timeout", "60"]  # on a busy machine
        target = [f"http://127.0.0.1:{server.port}/openapi.json"]
        header = ["-H", f"Authorization: Bearer {token}"]
        child = subprocess.run(
            [*command, *target, *options, *header],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
    assert child.returncode == 0, child.stdout[-4_000:]
