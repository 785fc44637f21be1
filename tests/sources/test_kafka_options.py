"""Options of `tidings-kafka`, valid and refused."""

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from tidings.errors import SourceError
from tidings.sources.kafka_options import KafkaOptions, PartitionChoice, read_options

SERVERS = {"kafka.bootstrap.servers": "a:9092"}
FILMS = {**SERVERS, "subscribe": "films"}


def test_servers_and_topics_suffice():
    assert read_options(FILMS) == KafkaOptions(
        PartitionChoice(("films",)), {"bootstrap.servers": "a:9092"}
    )


def test_all_options_are_read_with_names_in_any_case():
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
        PartitionChoice(("films", "news")),
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
    partitions = [("films", 1), ("films", 0), ("news", 0), ("f2", 0)]
    assert read_options({**SERVERS, **choice}).choice.select(partitions) == expected


def test_a_chosen_topic_or_partition_that_is_missing_is_named():
    assert PartitionChoice(("films", "news")).missing([("films", 0)]) == "topic 'news'"
    assert PartitionChoice(partitions=(("a", 0), ("a", 1))).missing([("a", 0)]) == "partition a-1"
    assert PartitionChoice(pattern="x").missing([]) is None


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        ({"subscribe": "films"}, "option 'kafka.bootstrap.servers' is missing, such as ka"),
        (SERVERS, "set exactly one of subscribe, subscribePattern, assign, not 0"),
        (
            {**FILMS, "assign": "{}"},
            "set exactly one of subscribe, subscribePattern, assign, not 2",
        ),
        ({**FILMS, "subscribe": " ,"}, "subscribe must list topics separated by commas, not ' ,'"),
        ({**SERVERS, "subscribePattern": "("}, "subscribePattern '(' is not a regular expression"),
        ({**SERVERS, "assign": "films"}, "assign must be a JSON object by topic, not 'films'"),
        ({**SERVERS, "assign": '{"a":3}'}, "assign must list partitions by topic, such as"),
        ({**SERVERS, "assign": '{"a":[-1]}'}, "assign must list partitions by topic, such as"),
        ({**SERVERS, "assign": '{"a":[2147483648]}'}, "assign must list partitions by topic"),
        (
            {**FILMS, "startingOffset": "latest"},
            "unknown option 'startingOffset'; expected one of: ",
        ),
        (
            {**FILMS, "minPartitions": "3"},
            "unknown option 'minPartitions'; expected one of: assign,",
        ),
        (
            {**FILMS, "startingOffsets": "first"},
            "startingOffsets must be a JSON object by topic, not",
        ),
        ({**FILMS, "startingOffsets": '{"a":{"0":-3}}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "startingOffsets": '{"a":{"x":3}}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "startingOffsets": f'{{"a":{{"{"9" * 5_000}":3}}}}'}, "-1 latest, not"),
        ({**FILMS, "startingOffsets": f'{{"a":{{"0":{2**63}}}}}'}, "-1 latest, not"),
        ({**FILMS, "startingOffsets": '{"a":[3]}'}, "-2 is earliest and -1 latest, not"),
        ({**FILMS, "maxOffsetsPerTrigger": "0"}, "a whole number of at least 1, not"),
        ({**FILMS, "maxOffsetsPerTrigger": "x"}, "a whole number of at least 1, not"),
        ({**FILMS, "failOnDataLoss": "no"}, "failOnDataLoss is one of 'true', 'false', not 'no'"),
        ({**FILMS, "kafka.enable.auto.commit": "true"}, "kafka.enable.auto.commit cannot be set"),
    ],
)
def test_an_error_names_the_option_and_the_rule(texts, reason):
    with pytest.raises(SourceError) as error:
        read_options(texts)
    assert reason in str(error.value)
