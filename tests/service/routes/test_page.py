"""The files of the page: served under a strict policy, small, and part of the package."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx2
import pytest
from tests.service.running import client_of, server_at

from tidings.service.routes.page import PAGE

MOST_SCRIPT_BYTES = 150_000
MARKUP = ("index.html", "docs.html")
PROJECT = Path(__file__).parents[3] / "pyproject.toml"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    address = str(tmp_path_factory.mktemp("page") / "t.db")
    with server_at(address) as server, client_of(server) as client:
        yield client


@pytest.mark.parametrize("path", ["/", "/docs", *(f"/page/{name}" for name in sorted(PAGE))])
def test_every_file_has_the_policy(client: httpx2.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert client.head(path).status_code == 200


def test_a_file_that_is_known_is_not_sent_again(client: httpx2.Client) -> None:
    etag = client.get("/page/main.js").headers["etag"]
    again = client.get("/page/main.js", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("name", ["none.js", "../app.py", "%2e%2e/app.py", "views", "", "index"])
def test_there_is_nothing_else(client: httpx2.Client, name: str) -> None:
    answer = client.get(f"/page/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_scripts_are_small() -> None:
    scripts = [file for name, file in PAGE.items() if name.endswith(".js")]
    assert 0 < sum(len(file.content) for file in scripts) < MOST_SCRIPT_BYTES


def test_every_file_of_the_folder_is_served_and_packaged() -> None:
    folder = Path(str(files("tidings.service"))) / "page"
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert found == PAGE.keys()
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    assert project["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["src/tidings"]}


@pytest.mark.parametrize("name", MARKUP)
def test_nothing_is_inline_or_from_elsewhere(name: str) -> None:
    markup = PAGE[name].content.decode()
    for attribute in re.findall(r'(?:src|href)="([^"]*)"', markup):
        assert attribute.startswith(("/", "#"))
    assert not re.search(r"<style|\son\w+=|\sstyle=|<script(?![^>]*\bsrc=)", markup)
    for part, file in PAGE.items():
        text = file.content.decode()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text)
        if part.endswith((".js", ".css")):
            assert not re.search(r"""(?:import|url\()\s*["']?https?:""", text)


def test_all_files_that_are_named_exist() -> None:
    markup = "".join(PAGE[name].content.decode() for name in MARKUP)
    named = {
        name.removeprefix("/page/") for name in re.findall(r'(?:src|href)="(/page/[^"]+)"', markup)
    }
    assert named <= PAGE.keys()
    styles = {name for name in PAGE if name.endswith(".css")}
    assert styles <= named
