"""Members with functions travel as Spark's own objects: what another process makes of them."""

import pickle
from hashlib import sha256
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import tidings.spark as ts
from tidings import Event, InvalidPolicy, Policy, Sliding, Subscriber, Subscription
from tidings.index_files.subscriber_bundle import bundle_subscribers
from tidings.score.relaxed import Relaxed
from tidings.spark.match_stage.pickled_members import LIMIT, carry


def doubled(k: int = 2) -> Policy:
    return Policy(k=k, scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))


def travelled(found: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(found))


def test_members_that_travel_answer_as_they_do():
    people = [Subscriber("ann", doubled()), Subscriber("bob")]
    wanted = [Subscription("s", "ann", "x = 1 or y = 1"), Subscription("t", "bob", "x = 2")]
    found = travelled(carry(bundle_subscribers(people, wanted)))
    assert found.parts == 1
    assert not found.counting()
    assert found.serve(0) is travelled(found).serve(0)
    assert found.serve(0).wanted([Event("e", {"x": 1}, 0)]).ranks.tolist() == [2.0]
    roster = travelled(found.roster())
    assert [roster.policy(name) for name in ("bob", "cy")] == [Policy(), None]
    assert roster.policy("ann") is roster.policy("ann")
    assert roster.changed_since(roster.version) is None


def test_the_version_of_a_roster_is_that_of_its_policies():
    def version(policy: Policy) -> int:
        return carry(bundle_subscribers([Subscriber("u", policy)], [])).roster().version

    same = [version(Policy(window=Sliding(3))) for _ in range(2)]
    assert same[0] == same[1] != version(Policy(window=Sliding(4)))


def test_somebody_who_counts_is_told():
    counting = Subscriber("u", Policy(window=Sliding(3, count="published")))
    assert carry(bundle_subscribers([counting], [])).counting()


@pytest.mark.parametrize(
    ("threshold", "limit"), [(None, LIMIT), ("4m", 4 << 20), ("70000b", 70000), ("x", LIMIT)]
)
def test_a_roster_that_spark_cannot_send_is_refused_in_words(threshold, limit):
    given = bundle_subscribers(
        [Subscriber(sha256(b"%d" % n).hexdigest(), doubled()) for n in range(1000)], []
    )
    found = carry(given, threshold)
    assert found.limit == limit
    if limit > LIMIT // 2:
        assert found.roster().policy(given[0].name)
    else:
        with pytest.raises(InvalidPolicy, match=r"at most 70,000 .*UDFCompressionThreshold"):
            found.roster()


def test_thousands_with_functions_are_fed_by_spark(spark: SparkSession) -> None:
    policies = [doubled(k) for k in (1, 2, 3)]
    people = [Subscriber(f"user-{n:05}", policies[n % 3]) for n in range(4_000)]
    wanted = [Subscription(f"s{n}", f"user-{n:05}", f"x = {n % 50} or y = 1") for n in range(4_000)]
    rows = spark.createDataFrame(
        [(f"e{n}", n, n) for n in range(4)], "id string, published_at long, x int"
    )
    found = ts.feed(rows, wanted, people, buckets=2).toArrow().to_pylist()
    assert len(found) == 4 * 80
    assert {each["rank"] for each in found} == {2.0}
    assert ts.match(rows, wanted, people).count() == 4 * 80
