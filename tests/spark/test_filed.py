"""Members with functions in a file: what another process reads of it."""

import pickle

from tidings import Event, Policy, Sliding, Subscriber, Subscription
from tidings.score.relaxed import Relaxed
from tidings.sealed.member import members
from tidings.spark.filed import FiledRoster, file_members


def test_a_file_of_members_answers_as_they_do_and_travels_as_its_path(tmp_path):
    doubled = Policy(k=2, scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))
    people = [Subscriber("ann", doubled), Subscriber("bob")]
    wanted = [Subscription("s", "ann", "x = 1 or y = 1"), Subscription("t", "bob", "x = 2")]
    filed = file_members(tmp_path, members(people, wanted))
    found = pickle.loads(pickle.dumps(filed))
    assert found.parts == 1
    assert not found.counting()
    assert found.serve(0) is found.serve(0)
    assert found.serve(0).wanted([Event("e", {"x": 1}, 0)]).ranks.tolist() == [2.0]
    roster = FiledRoster(found.path)
    assert [roster.policy(name) for name in ("bob", "cy")] == [Policy(), None]
    assert roster.policy("ann") is roster.policy("ann")
    assert len(pickle.dumps(roster)) < 1000


def test_the_version_of_a_roster_is_that_of_its_policies(tmp_path):
    def version(name, policy):
        place = tmp_path / name
        place.mkdir()
        return FiledRoster(file_members(place, members([Subscriber("u", policy)], [])).path).version

    same = [version(name, Policy(window=Sliding(3))) for name in ("a", "b")]
    assert same[0] == same[1] != version("c", Policy(window=Sliding(4)))


def test_somebody_who_counts_is_told(tmp_path):
    counting = Subscriber("u", Policy(window=Sliding(3, count="published")))
    assert file_members(tmp_path, members([counting], [])).counting()
