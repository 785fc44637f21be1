"""The options of `tidings-kafka`: what is read, and what is refused with its name and rule."""

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from tidings.errors import SourceError
from tidings.spark.sources.kafka_options import Choice, KafkaOptions, read_options

SERVERS = {"kafka.bootstrap.servers": "a:9092"}
FILMS = {**SERVERS, "subscribe": "films"}


def test_the_least_is_servers_and_topics():
    assert read_options(FILMS) == KafkaOptions(Choice(("films",)), {"bootstrap.servers": "a:9092"})


def test_all_options_are_read_whatever_the_case_of_their_names():
    given = {
        **SERVERS,
        "kafka.Security.Protocol": "SSL",
        "subscribe": "films, news",
        "startingOffsets": '{"films":{"0":23,"1":-2},"news":{"0":-1}}',
        "endingOffsets": "LATEST",
        "maxOffsetsPerTrigger": "1000",
        "failOnDataLoss": "False",
        "includeHeaders": "true",
        "groupIdPrefix": "mine",
        "kafkaConsumer.pollTimeoutMs": "500",
    }
    expected = KafkaOptions(
        Choice(("films", "news")),
        {"bootstrap.servers": "a:9092", "security.protocol": "SSL"},
        {("films", 0): 23, ("films", 1): -2, ("news", 0): -1},
        "latest",
        1000,
        False,
        True,
        "mine",
        0.5,
    )
    assert read_options(given) == expected
    assert read_options(CaseInsensitiveDict(given)) == expected


def test_passwords_are_not_shown():
    assert "secret" not in str(read_options({**FILMS, "kafka.sasl.password": "secret"}))


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"subscribe": "films"}, [("films", 0), ("films", 1)]),
        ({"subscribePattern": "f.*"}, [("f2", 0), ("films", 0), ("films", 1)]),
        ({"subscribePattern": "ilm"}, []),
        ({"assign": '{"films":[1],"news":[0]}'}, [("films", 1), ("news", 0)]),
    ],
)
def test_a_choice_picks_partitions(choice, expected):
    found = [("films", 1), ("films", 0), ("news", 0), ("f2", 0)]
    assert read_options({**SERVERS, **choice}).choice.of(found) == expected


def test_what_is_chosen_and_not_there_is_named():
    assert Choice(("films", "news")).missing([("films", 0)]) == "topic 'news'"
    assert Choice(partitions=(("a", 0), ("a", 1))).missing([("a", 0)]) == "partition a-1"
    assert Choice(pattern="x").missing([]) is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"subscribe": "films"}, "option 'kafka.bootstrap.servers' is missing, such as ka"),
        (SERVERS, "give one of subscribe, subscribePattern, assign, not 0 of them"),
        ({**FILMS, "assign": "{}"}, "give one of subscribe, subscribePattern, assign, not 2"),
        ({**FILMS, "subscribe": " ,"}, "subscribe names topics, parted by commas, not ' ,'"),
        ({**SERVERS, "subscribePattern": "("}, "subscribePattern '(' is no pattern"),
        ({**SERVERS, "assign": "films"}, "assign is a JSON object by topic, not 'films'"),
        ({**SERVERS, "assign": '{"a":3}'}, "assign lists partitions by topic, such as"),
        ({**FILMS, "startingOffset": "latest"}, "unknown option 'startingOffset'; possible are "),
        ({**FILMS, "minPartitions": "3"}, "unknown option 'minPartitions'; possible are assign,"),
        ({**FILMS, "startingOffsets": "first"}, "startingOffsets is a JSON object by topic, not"),
        ({**FILMS, "startingOffsets": '{"a":{"0":-3}}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "startingOffsets": '{"a":{"x":3}}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "startingOffsets": '{"a":[3]}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger is a whole number of at le"),
        ({**FILMS, "maxOffsetsPerTrigger": "x"}, "maxOffsetsPerTrigger is a whole number of at le"),
        ({**FILMS, "failOnDataLoss": "no"}, "failOnDataLoss is one of 'true', 'false', not 'no'"),
        ({**FILMS, "kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit cannot be set"),
    ],
)
def test_a_mistake_is_named_with_its_rule(given, reason):
    with pytest.raises(SourceError) as error:
        read_options(given)
    assert reason in str(error.value)
