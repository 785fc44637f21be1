"""Sources of matchers that travel with the functions of their policies."""

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
from tidings.spark.match_stage.matcher_source import DEFAULT_THRESHOLD, PickledSource


def doubled(k: int = 2) -> Policy:
    return Policy(k=k, scorer=Relaxed(aggregate=lambda weights: 2 * sum(weights)))


def travelled(value: Any) -> Any:
    return pickle.loads(cloudpickle.dumps(value))


def test_a_pickled_source_matches_as_before():
    subscribers = [Subscriber("ann", doubled()), Subscriber("bob")]
    owned = [Subscription("s", "ann", "x = 1 or y = 1"), Subscription("t", "bob", "x = 2")]
    source = travelled(PickledSource.of(bundle_subscribers(subscribers, owned)))
    assert source.parts == 1
    assert not source.counts_published()
    assert source.matcher(0) is travelled(source).matcher(0)
    assert source.matcher(0).match_many([Event("e", {"x": 1}, 0)]).ranks.tolist() == [2.0]
    policies = travelled(source.policy_source()).policies()
    assert [policies.policy(name) for name in ("bob", "cy")] == [Policy(), None]
    assert policies.policy("ann") is travelled(policies).policy("ann")
    assert policies.version == source.listed.version
    assert policies.changed_since(policies.version) is None


def test_the_version_is_a_fingerprint_of_the_policies():
    def version(policy: Policy) -> int:
        return PickledSource.of(bundle_subscribers([Subscriber("u", policy)], [])).listed.version

    same = [version(Policy(window=Sliding(3))) for _ in range(2)]
    assert same[0] == same[1] != version(Policy(window=Sliding(4)))


def test_a_subscriber_that_counts_publications_is_reported():
    counting = Subscriber("u", Policy(window=Sliding(3, count="published")))
    assert PickledSource.of(bundle_subscribers([counting], [])).counts_published()


@pytest.mark.parametrize(
    ("threshold", "limit"),
    [(None, DEFAULT_THRESHOLD), ("4m", 4 << 20), ("70000b", 70000), ("x", DEFAULT_THRESHOLD)],
)
def test_policies_that_spark_cannot_send_are_refused(threshold, limit):
    bundles = bundle_subscribers(
        [Subscriber(sha256(b"%d" % n).hexdigest(), doubled()) for n in range(1000)], []
    )
    source = PickledSource.of(bundles, threshold)
    assert source.threshold == limit
    if limit > DEFAULT_THRESHOLD // 2:
        assert source.policy_source().policies().policy(bundles[0].name)
    else:
        with pytest.raises(InvalidPolicy, match=r"at most 70,000 .*UDFCompressionThreshold"):
            source.policy_source()


def test_spark_feeds_thousands_of_subscribers_with_functions(spark: SparkSession) -> None:
    policies = [doubled(k) for k in (1, 2, 3)]
    subscribers = [Subscriber(f"user-{n:05}", policies[n % 3]) for n in range(4_000)]
    owned = [Subscription(f"s{n}", f"user-{n:05}", f"x = {n % 50} or y = 1") for n in range(4_000)]
    rows = spark.createDataFrame(
        [(f"e{n}", n, n) for n in range(4)], "id string, published_at long, x int"
    )
    deliveries = ts.feed(rows, owned, subscribers, buckets=2).toArrow().to_pylist()
    assert len(deliveries) == 4 * 80
    assert {delivery["rank"] for delivery in deliveries} == {2.0}
    assert ts.match(rows, owned, subscribers).count() == 4 * 80
