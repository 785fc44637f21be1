"""The worked cases of semantics §8, through the whole engine."""

import pytest

from tidings import (
    DivRank,
    Engine,
    Event,
    Graph,
    Periodic,
    Policy,
    Sliding,
    Subscriber,
    Subscription,
)


def by_genre(policy: Policy, **prefranks: float) -> Engine:
    """An engine for Addison, who ranks genres."""
    engine = Engine()
    engine.subscribe(Subscriber("addison", policy))
    for genre, prefrank in prefranks.items():
        engine.add(Subscription(genre, "addison", f"genre = '{genre}'", prefrank=prefrank))
    return engine


def test_pref_proposition_3_two_events_enter_with_one() -> None:
    engine = Engine()
    policy = Policy(k=2, window=Sliding(3), diversify=DivRank(sigma=0.5))
    engine.subscribe(Subscriber("addison", policy))
    films = [
        ("comedy", "Allen", 0.9),
        ("thriller", "Burton", 0.9),
        ("thriller", "Hitchcock", 0.8),
        ("drama", "Spielberg", 0.85),
        ("drama", "Tarantino", 0.9),
    ]
    delivered = []
    for number, (genre, director, rank) in enumerate(films, start=1):
        where = f"genre = '{genre}' and director = '{director}'"
        engine.add(Subscription(director, "addison", where, prefrank=rank))
        film = Event(f"e{number}", {"genre": genre, "director": director}, published_at=number)
        delivered.append({delivery.event for delivery in engine.publish(film)})
    assert delivered == [{"e1"}, {"e2"}, set(), {"e4"}, {"e3", "e5"}]


@pytest.mark.parametrize(("subscriber", "burton"), [("Addison", 0.9), ("Carson", 0.5)])
def test_pref_3_2_the_most_specific_subscription_ranks(subscriber: str, burton: float) -> None:
    engine = Engine()
    engine.subscribe(Subscriber(subscriber))
    engine.add(Subscription("drama", subscriber, "genre = 'drama'", prefrank=0.7))
    where = "genre = 'drama' and director = 'Tim Burton'"
    engine.add(Subscription("burton", subscriber, where, prefrank=burton))
    big_fish = Event("e1", {"genre": "drama", "director": "Tim Burton"}, published_at=0)
    [delivery] = engine.publish(big_fish)
    assert delivery.rank == burton
    assert delivery.matched == ("burton", "drama")


def test_tks_example_4_2_1_bob_and_the_product() -> None:
    """Edges 0.4 / 0.3 and 0.6 / 0.3, predicates 0.4, 0.3 and 0.6: 0.5 * 5 / 3 + 0.5 * 1.3 / 3."""
    engine = Engine()
    engine.subscribe(Subscriber("bob", Policy(scorer=Graph(lambda_=0.5))))
    wanted = {
        "s1": [["carrier = 'AT&T'", 0.4], ["brand = 'HTC'", 0.3], ["storage <= 16", 0.7]],
        "s2": [["carrier = 'Verizon'", 0.5], ["storage <= 32", 0.2]],
        "s3": [["brand = 'HTC'", 0.3], ["storage <= 32", 0.6]],
    }
    for name, weighted in wanted.items():
        engine.add(Subscription(name, "bob", any=weighted))
    product = {"carrier": "AT&T", "brand": "HTC", "storage": 32, "color": "Black", "OS": "Android"}
    [delivery] = engine.publish({"id": "p", "published_at": 0, "attributes": product})
    assert delivery.rank == 1.05
    assert delivery.matched == ("s1", "s2", "s3")


def test_pref_5_1_two_films_every_half_hour() -> None:
    """Of equal genres the newer film wins, and two genres win over one."""
    policy = Policy(k=2, window=Periodic("30m"), diversify=DivRank(sigma=0.5))
    engine = by_genre(policy, comedy=0.9, romance=0.9, drama=0.8, horror=0.6)
    programme = [
        ("20:00", "romance"),
        ("20:05", "comedy"),
        ("20:10", "drama"),
        ("20:25", "romance"),
        ("20:30", "comedy"),
        ("20:40", "comedy"),
        ("20:45", "comedy"),
        ("20:50", "romance"),
    ]
    films = [
        {
            "id": f"e{number}",
            "published_at": f"2026-11-15T{at}:00Z",
            "attributes": {"genre": genre},
        }
        for number, (at, genre) in enumerate(programme, start=1)
    ]
    assert engine.publish_many(films[:4]) == []
    first = engine.publish(films[4])
    assert [each.event for each in first] == ["e2", "e4"]
    assert {each.delivered_at for each in first} == {"2026-11-15T20:30:00Z"}
    assert engine.publish_many(films[5:]) == []
    assert engine.advance("2026-11-15T20:59:59Z") == []
    assert [each.event for each in engine.advance("2026-11-15T21:00:00Z")] == ["e7", "e8"]


def test_pref_figure_5_four_of_six_genres() -> None:
    policy = Policy(k=4, window=Periodic(6), diversify=DivRank(sigma=0.5))
    ranks = {"comedy": 0.9, "drama": 0.8, "horror": 0.7, "sci-fi": 0.6}
    engine = by_genre(policy, **ranks)
    genres = ["comedy", "drama", "drama", "drama", "horror", "sci-fi"]
    films = [Event(f"e{n}", {"genre": genre}, n) for n, genre in enumerate(genres, start=1)]
    assert [delivery.event for delivery in engine.publish_many(films)] == ["e1", "e4", "e5", "e6"]
