"""The commands `check`, `match` and `explain`: their output, its stream, and the exit status."""

import json
import shutil
from pathlib import Path

import pytest
from tests.app.cli.commands import (
    CONFIG,
    EVENTS,
    HORROR,
    SUBSCRIBERS,
    SUBSCRIPTIONS,
    printed,
    tidings,
    wrong_usage,
)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["check"], "Missing argument"),
        (["check", "nowhere.toml"], "does not exist"),
        (["match", "nowhere.jsonl", EVENTS], "does not exist"),
        (["match", SUBSCRIPTIONS], "pass either a file of EVENTS or one --event"),
        (["match", SUBSCRIPTIONS, EVENTS, "--event", "{}"], "pass either a file of EVENTS or one"),
        (["match", "-", "-"], "only one file can be standard input"),
        (
            ["match", SUBSCRIPTIONS, EVENTS, "--scorer", "fame"],
            "unknown scorer 'fame'; expected one of: pref",
        ),
        (["match", SUBSCRIPTIONS, EVENTS, "--scorer", "{"], "Expecting property name"),
        (["match", SUBSCRIPTIONS, EVENTS, "-k", "0"], "-k"),
        (["match", SUBSCRIPTIONS, EVENTS, "--direction", "up"], "'up'"),
        (["explain", SUBSCRIPTIONS, EVENTS, "--subscriber", "ada"], "Missing option '--event'"),
        (
            ["explain", SUBSCRIPTIONS, "--event", HORROR],
            "pass either --subscription or --subscriber",
        ),
        (
            [
                "explain",
                SUBSCRIPTIONS,
                "--event",
                "{}",
                "--subscriber",
                "ada",
                "--subscription",
                "x",
            ],
            "pass either --subscription or --subscriber",
        ),
        (
            ["explain", SUBSCRIPTIONS, "--event", HORROR, "--subscriber", "ada", "-k", 3],
            "-k requires --subscription",
        ),
        (
            ["explain", "-", "-", "--event", "e1", "--subscriber", "ada"],
            "only one file can be standard input",
        ),
    ],
)
def test_wrong_usage_is_exit_status_2(arguments, reason):
    assert reason in wrong_usage(*arguments)


def test_check_prints_a_table_and_a_count():
    result = tidings("check", CONFIG, SUBSCRIPTIONS, columns=200)
    assert result.exit_code == 0
    rows = [line.split() for line in result.stdout.splitlines() if line.strip()]
    assert rows[0] == ["File", "Holds", "Records", "Problems"]
    assert [row[1:] for row in rows[2:6]] == [
        ["config", "0"],
        ["subscribers", "4", "0"],
        ["subscriptions", "13", "0"],
        ["events", "30", "0"],
    ]
    assert result.stdout.endswith("4 files, 47 records: no problems\n")
    assert "\x1b" not in result.stdout


def test_check_reads_policies_back_in_words(tmp_path):
    path = tmp_path / "subscribers.jsonl"
    rules = [
        {"name": "quiet", "zone": "Europe/Athens"},
        {"name": "quota", "n": 5, "zone": "Europe/Athens"},
    ]
    ids = ["ann", "bob", "cat", "dan"]
    forms = [{"id": name, "policy": {"rules": rules}} for name in ids]
    others = [{"id": "eve"}, {"id": "fay", "paused": True}]
    path.write_text("".join(f"{json.dumps(form)}\n" for form in [*forms, *others]))
    first = "each match at once if it is among the best 10 so far, ranked by preference"
    words = (
        f"{first}; at most 5 a day Athens time, the best; nothing between 22:00 and 07:00 Athens "
        "time, then the best 10 of what came"
    )
    lines = tidings("check", path).stdout.splitlines()
    assert f"ann, bob, cat and 1 more: {words}" in lines
    assert f"eve: {first}" in lines
    assert f"fay: {first}; paused, so nothing is delivered" in lines
    assert printed(tidings("check", path, "--json"))[0]["policies"] == [
        {"policy": words, "subscribers": ids},
        {"policy": first, "subscribers": ["eve"]},
        {"policy": f"{first}; paused, so nothing is delivered", "subscribers": ["fay"]},
    ]


def test_check_prints_the_location_and_fails(tmp_path):
    path = tmp_path / "w.jsonl"
    form = {"id": "s1", "subscriber": "ann", "where": f"year > 3 and title like 'x{'y' * 60}_%'"}
    path.write_text(json.dumps(form) + "\n")
    result = tidings("check", path)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == f"{path}:1"
    assert lines[1] == "  subscription s1: `like` takes % at the ends only, and no _"
    assert lines[2].index("title like") == lines[3].index("^")
    assert lines[-1] == "1 file, 1 record: 1 problem"


def test_check_as_json(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"id": "e1", "published_at": 0, "attributes": {"year": NaN}}\n')
    result = tidings("check", path, "--json")
    assert result.exit_code == 1
    reason = "invalid JSON: NaN is not a JSON number"
    problem = {"file": str(path), "line": 1, "reason": reason}
    assert printed(result) == [
        {
            "files": [{"file": str(path), "kind": "events", "records": 1}],
            "kinds": [problem | {"count": 1}],
            "problems": [problem],
            "diagnoses": [],
            "policies": [],
        }
    ]


MISTAKES = {
    "dst = 'MIA'": "no event has the attribute dst; did you mean dest?",
    "Dest = 'MIA'": "no event has the attribute Dest; did you mean dest?",
    "dest = 5": "dest holds strings, not numbers; write dest = '5'",
    "distance > '500'": "distance holds numbers, not strings; write distance > 500",
    "departs > '2013-01-01'": (
        "departs holds times, not strings; write departs > timestamp '2013-01-01T00:00:00Z'"
    ),
}


def test_check_names_mistakes_in_conditions(tmp_path):
    departs = {"time": "2013-01-01T05:15:00Z"}
    flight = {"dest": "MIA", "distance": 1089, "departs": departs}
    event = {"id": "e1", "published_at": 0, "attributes": flight}
    (tmp_path / "events.jsonl").write_text(json.dumps(event))
    conditions = [*MISTAKES, "dest = 'MAI'", "dest = 'MIA' and distance > 2000"]
    forms = [
        {"id": f"s{number}", "subscriber": "ann", "where": where}
        for number, where in enumerate(conditions, start=1)
    ]
    (tmp_path / "subscriptions.jsonl").write_text("\n".join(map(json.dumps, forms)))
    result = tidings("check", tmp_path / "events.jsonl", tmp_path / "subscriptions.jsonl")
    assert result.exit_code == 1
    for number, (condition, advice) in enumerate(MISTAKES.items(), start=1):
        assert f"subscriptions.jsonl:{number}\n" in result.stdout
        assert f"  subscription s{number}: {condition}: {advice}\n" in result.stdout
    assert "note: 7 subscriptions, 1 event: none matched 7 subscriptions" in result.stdout
    assert "  dest = 'MAI': no event has such a value; did you mean 'MIA'? (1 sub" in result.stdout
    assert "  distance > 2000: no event has such a value; distance is always 1089" in result.stdout
    (form,) = printed(
        tidings("check", tmp_path / "events.jsonl", tmp_path / "subscriptions.jsonl", "--json")
    )
    assert [problem["id"] for problem in form["problems"]] == ["s1", "s2", "s3", "s4", "s5"]
    assert form["diagnoses"][0]["counts"] == {"attribute": 2, "type": 3, "value": 2}


def test_match_says_why_nothing_matches():
    result = tidings("match", SUBSCRIPTIONS, "--event", '{"gnere": "horror", "rating": "6"}')
    assert result.stdout == "no matches\n"
    assert "no event has the attribute genre; did you mean gnere?" in result.stderr
    assert "rating holds strings, not numbers; write rating >= '7.5'" in result.stderr
    result = tidings("match", SUBSCRIPTIONS, "--event", HORROR)
    assert result.stderr == ""


def test_match_tells_which_index_has_answered():
    result = tidings("match", SUBSCRIPTIONS, "--event", HORROR, "--plan")
    assert result.exit_code == 0
    assert "the index 'scan', since there are fewer than" in result.stderr


def test_match_lists_the_subscribers_of_an_event():
    result = tidings("match", SUBSCRIPTIONS, "--event", HORROR, "--json")
    assert result.exit_code == 0
    assert [(row["subscriber"], row["score"], row["matched"]) for row in printed(result)] == [
        ("ada", 1.0, ["ada-comedy"]),
        ("dev", 1.0, ["dev-laughs"]),
        ("guest", 1.0, ["guest-short"]),
        ("bruno", 0.6, ["bruno-horror"]),
    ]
    assert {row["event"] for row in printed(result)} == {"event"}


def test_subscribers_bring_their_scorers_and_preferences():
    result = tidings(
        "match", SUBSCRIPTIONS, "--event", HORROR, "--subscribers", SUBSCRIBERS, "--json"
    )
    scores = {row["subscriber"]: row["score"] for row in printed(result)}
    assert scores.keys() == {"ada", "bruno", "chiara", "dev", "guest"}
    assert scores["ada"] == pytest.approx(1 / 3)
    assert scores["chiara"] == pytest.approx(0.5)


def test_the_scorer_option_overrides_all_others():
    result = tidings(
        "match", SUBSCRIPTIONS, "--event", HORROR, "--scorer", "relaxed", "-k", 2, "--json"
    )
    assert [(row["subscriber"], row["score"]) for row in printed(result)] == [
        ("bruno", 2.0),
        ("ada", 1.0),
    ]
    graph = '{"name": "graph", "lambda": 0}'
    result = tidings(
        "match", SUBSCRIPTIONS, "--event", HORROR, "--scorer", graph, "-k", 1, "--json"
    )
    assert [row["subscriber"] for row in printed(result)] == ["ada"]


def test_match_finds_the_best_subscriptions_of_each_event():
    result = tidings("match", SUBSCRIPTIONS, EVENTS, "--direction", "target", "-k", 2, "--json")
    rows = printed(result)
    assert rows[:2] == [
        {
            "event": "film-01",
            "position": position,
            "subscription": name,
            "subscriber": "ada",
            "score": 1.0,
        }
        for position, name in ((1, "ada-drama"), (2, "ada-okafor"))
    ]
    assert max(row["position"] for row in rows) == 2


@pytest.mark.parametrize("direction", ["feed", "target"])
def test_match_prints_a_table(direction):
    result = tidings("match", SUBSCRIPTIONS, "--event", HORROR, "--direction", direction)
    lines = [line.split() for line in result.stdout.splitlines() if line.strip()]
    if direction == "feed":
        assert lines[0] == ["Event", "Subscriber", "Score", "Matched", "by"]
        assert lines[2] == ["event", "ada", "1", "ada-comedy"]
        assert lines[-1] == ["4", "matches"]
    else:
        assert lines[0] == ["Event", "Place", "Subscription", "Subscriber", "Score"]
        assert lines[2] == ["event", "1", "ada-comedy", "ada", "1"]


def test_no_matches_are_reported():
    result = tidings("match", SUBSCRIPTIONS, "--event", '{"genre": "western"}')
    assert (result.exit_code, result.stdout) == (0, "no matches\n")


def test_match_reads_standard_input():
    events = Path(EVENTS).read_text() + '\n{"id": "bad"}\n'
    result = tidings("match", SUBSCRIPTIONS, "-", "--json", stdin=events)
    assert result.exit_code == 1
    assert printed(result) == printed(tidings("match", SUBSCRIPTIONS, EVENTS, "--json"))
    assert result.stderr.startswith("-, record 32\n  event bad: field 'published_at' is missing")
    subscriptions = Path(SUBSCRIPTIONS).read_text()
    result = tidings("match", "-", "--event", HORROR, "--json", stdin=subscriptions)
    assert printed(result) == printed(tidings("match", SUBSCRIPTIONS, "--event", HORROR, "--json"))


def test_a_bad_subscription_does_not_affect_the_others(tmp_path):
    path = tmp_path / "subscriptions.jsonl"
    path.write_text(
        Path(SUBSCRIPTIONS).read_text() + '{"id": "x", "subscriber": "y", "where": "z >"}\n'
    )
    result = tidings("match", path, "--event", HORROR, "--json")
    assert (result.exit_code, len(printed(result))) == (1, 4)
    assert result.stderr.startswith(f"{path}:14\n  subscription x: this cannot be read as a cond")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("{", "error: the event is not valid JSON: "),
        ("3", "error: event: the form is an object"),
        ('{"year": null}', "error: event event: attribute year: null is not a value"),
        ('{"id": "e1", "attributes": {}}', "error: event e1: field 'published_at' is missing"),
    ],
)
def test_a_bad_event_is_an_error(event, reason):
    result = tidings("match", SUBSCRIPTIONS, "--event", event)
    assert result.exit_code == 1
    assert result.stderr.startswith(reason)


def test_explain_prints_the_place_of_a_subscription():
    command_line = ("explain", SUBSCRIPTIONS, "--event", HORROR, "--scorer", "relaxed")
    result = tidings(*command_line, "--subscription", "dev-laughs", "-k", 2, columns=200)
    assert (result.exit_code, result.stderr) == (0, "")
    verdict, reason = result.stdout.splitlines()
    assert verdict.startswith(
        "dev-laughs for event: position 3 with 1; the last of the best 2 has 1"
    )
    assert verdict.endswith(": it ties, and smaller ids go first")
    assert reason == "  dev-laughs matches with 1; holds: genre = 'comedy', rating >= 7"
    result = tidings(*command_line, "--subscription", "bruno-horror", "-k", 2, columns=200)
    assert result.stdout.startswith("bruno-horror for event: position 1 of the best 2, with 2\n")
    result = tidings(*command_line, "--subscription", "dev-family", "-k", 1, columns=200)
    assert result.stdout.startswith(
        "dev-family for event: no position, since it does not match; the "
    )


def test_explain_as_json_gives_the_place_and_the_failing_predicates():
    command_line = (
        "explain",
        SUBSCRIPTIONS,
        EVENTS,
        "--event",
        "film-01",
        "--subscription",
        "guest-short",
    )
    (explanation,) = printed(tidings(*command_line, "-k", 1, "--json"))
    assert explanation == {
        "subscription": "guest-short",
        "event": "film-01",
        "score": None,
        "position": None,
        "k": 1,
        "kth_score": 1.0,
        "lacking": None,
        "reason": {
            "subscription": "guest-short",
            "matched": False,
            "score": None,
            "holds": [],
            "fails": [
                {
                    "predicate": "minutes between 75 and 95",
                    "attribute": "minutes",
                    "value": 118,
                    "type": "number",
                    "hint": None,
                }
            ],
        },
    }
    ranking = printed(
        tidings("match", SUBSCRIPTIONS, EVENTS, "--direction", "target", "-k", 9, "--json")
    )
    places = {row["subscription"]: row["position"] for row in ranking if row["event"] == "film-01"}
    for name, place in places.items():
        (explanation,) = printed(tidings(*command_line[:-1], name, "--json"))
        assert (explanation["position"], explanation["k"], explanation["reason"]["matched"]) == (
            place,
            20,
            True,
        )


def test_explain_agrees_with_the_deliveries_of_a_run(example):
    """The explanation of an event for ada agrees with the output of `tidings run`."""
    text = example.read_text().replace('format = "parquet"', 'format = "jsonl"')
    example.write_text(text)
    tidings("run", example, "--engine", "local")
    (written,) = (example.parent / "out" / "deliveries").iterdir()
    rows = [json.loads(line) for line in written.read_text().splitlines()]
    delivered = {row["event"]: row["rank"] for row in rows if row["subscriber"] == "ada"}
    assert delivered
    for number in (1, 2, 4, 9, 30):
        event = f"film-{number:02}"
        command_line = ("explain", SUBSCRIPTIONS, EVENTS, "--event", event, "--subscriber", "ada")
        (explanation,) = printed(tidings(*command_line, "--subscribers", SUBSCRIBERS, "--json"))
        assert (explanation["delivery"] is not None) == (event in delivered)
        assert explanation["delivery"] is None or explanation["rank"] == delivered[event]
        assert {reason["subscription"] for reason in explanation["reasons"]} == {
            *("ada-drama", "ada-okafor", "ada-documentary", "ada-comedy")
        }


def test_explain_publishes_in_order_of_time(tmp_path):
    """The last event in the file is the oldest, so it is delivered before the others."""
    (tmp_path / "subscriptions.jsonl").write_text(
        '{"id": "s", "subscriber": "u", "where": "a = 1"}\n'
    )
    lines = [
        json.dumps({"id": f"e{seconds}", "published_at": seconds, "attributes": {"a": 1}})
        for seconds in (3, 2, 1)
    ]
    (tmp_path / "events.jsonl").write_text("\n".join(lines))
    for name in ("e1", "e2", "e3"):
        command_line = (
            "explain",
            tmp_path / "subscriptions.jsonl",
            tmp_path / "events.jsonl",
            "--event",
            name,
        )
        result = tidings(*command_line, "--subscriber", "u")
        assert result.stdout.startswith(f"{name} for u: delivered with rank 1, at position 1\n")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((EVENTS, "--event", "film-99", "--subscriber", "ada"), "event 'film-99' is not in "),
        ((EVENTS, "--event", "film-01", "--subscriber", "eve"), "there is no subscriber 'eve'"),
        (("--event", HORROR, "--subscription", "x"), "there is no subscription 'x'"),
        (("--event", "film-01", "--subscription", "x"), "the event is not valid JSON: "),
    ],
)
def test_explain_names_what_is_missing(arguments, reason):
    result = tidings("explain", SUBSCRIPTIONS, *arguments, columns=200)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"error: {reason}")


def test_explain_shows_a_bad_record_even_if_it_is_the_one_in_doubt(tmp_path):
    path = tmp_path / "subscriptions.jsonl"
    path.write_text(
        Path(SUBSCRIPTIONS).read_text() + '{"id": "x", "subscriber": "y", "where": "z >"}\n'
    )
    result = tidings("explain", path, "--event", HORROR, "--subscription", "x")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}:14\n  subscription x: this cannot be read")
    assert result.stderr.endswith("error: there is no subscription 'x'\n")
    result = tidings("explain", path, "--event", HORROR, "--subscription", "ada-comedy")
    assert (result.exit_code, result.stdout[:10]) == (1, "ada-comedy")


def test_pipes_and_devices_are_refused_by_check(tmp_path):
    for suffix in (".toml", ".jsonl", ".json", ".csv"):
        path = tmp_path / f"device{suffix}"
        path.symlink_to("/dev/zero")
        result = tidings("check", str(path))
        assert result.exit_code == 1
        assert "this is a pipe or a device" in result.stdout


def test_explain_replays_a_config(tmp_path):
    """The answer is that of the same files, and nothing is written."""
    shutil.copytree(Path(SUBSCRIPTIONS).parent, tmp_path / "movies")
    config = tmp_path / "movies/pipeline.toml"
    result = tidings("explain", config, "--event", "film-02", "--subscriber", "ada")
    folder = tmp_path / "movies"
    files = (folder / "subscriptions.jsonl", folder / "events.jsonl")
    options = ("--subscribers", folder / "subscribers.jsonl", "--subscriber", "ada")
    assert result.stdout == tidings("explain", *files, *options, "--event", "film-02").stdout
    assert result.stdout.startswith("film-02 for ada: ")
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("7", "event '7' was refused: event 7: published_at: "),
        ("nosuch", "no event of the source, 1 file of events, has the id 'nosuch'"),
    ],
)
def test_explain_tells_why_a_config_has_no_such_event(tmp_path, event, reason):
    (tmp_path / "parts.jsonl").write_text(
        '{"sku": 6, "at": "2026-11-15", "n": 1}\n{"sku": 7, "at": "soon", "n": 1}\n'
    )
    (tmp_path / "wishes.jsonl").write_text('{"id": "s", "subscriber": "ann", "where": "n = 1"}')
    config = tmp_path / "parts.toml"
    config.write_text(
        """
        engine = "local"
        source = { path = "parts.jsonl", columns = { id = "sku", published_at = "at" } }
        subscriptions.path = "wishes.jsonl"
        sink.path = "out"
        """
    )
    explained = tidings("explain", config, "--event", event, "--subscriber", "ann")
    assert explained.exit_code == 1
    assert reason in explained.stderr


NIGHTS = """
engine = "local"
source = { path = "events.jsonl" }
subscriptions = { path = "subscriptions.jsonl" }
sink = { path = "out", format = "jsonl" }
[policies.default]
rules = [
  { name = "quiet", start = 22:00:00, end = "07:00", zone = "Europe/Athens" },
  { name = "quota", n = 2, pick = "first", zone = "Europe/Athens" },
]
"""


def test_rules_of_a_config_are_run_counted_and_explained(tmp_path):
    config = tmp_path / "nights.toml"
    config.write_text(NIGHTS)
    subscription = {"id": "s1", "subscriber": "ann", "where": "true", "prefrank": 0.5}
    (tmp_path / "subscriptions.jsonl").write_text(json.dumps(subscription) + "\n")
    times = ["2026-11-14T22:30:00Z", "2026-11-15T09:00:00Z", "2026-11-15T10:00:00Z"]
    events = [
        {"id": f"e{number}", "published_at": at, "attributes": {}}
        for number, at in enumerate([*times, "2026-11-16T09:00:00Z"])
    ]
    lines = "".join(f"{json.dumps(event)}\n" for event in events)
    (tmp_path / "events.jsonl").write_text(lines)
    result = tidings("run", config)
    assert "rules: 1 held, 1 released, 1 dropped by quota" in result.stdout
    text = next(tmp_path.glob("out/deliveries/*")).read_text()
    delivered = [json.loads(line) for line in text.splitlines()]
    assert [(delivery["event"], delivery["delivered_at"]) for delivery in delivered] == [
        ("e0", "2026-11-15T05:00:00Z"),
        ("e1", "2026-11-15T09:00:00Z"),
        ("e3", "2026-11-16T09:00:00Z"),
    ]
    explained = tidings("explain", config, "--event", "e0", "--subscriber", "ann").stdout
    assert "  held by quiet at 2026-11-14T22:30:00Z until 2026-11-15T05:00:00Z" in explained
    form = printed(tidings("explain", config, "--event", "e2", "--subscriber", "ann", "--json"))[0]
    assert [(each["rule"], each["fate"]) for each in form["rules"]] == [("quota", "dropped")]


def test_explain_takes_nothing_beside_a_config(tmp_path):
    config = tmp_path / "pipeline.toml"
    config.write_text("")
    result = tidings("explain", config, "--event", "film-02", "--subscription", "x")
    assert result.exit_code == 2
    assert "with a config, pass only --subscriber" in result.stderr
