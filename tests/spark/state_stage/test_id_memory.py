"""What has come already is known for a bounded while; a dict of times judges it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.state_stage.id_memory import Seen, hashed

steps = st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 9)), max_size=12)


@given(st.lists(steps, max_size=6), st.integers(0, 6), st.integers(1, 4))
def test_it_knows_what_a_dict_knows(
    batches: list[list[tuple[str, int]]], far: int, most: int
) -> None:
    seen, model, watermark = Seen(far, most), dict[str, int](), 0
    for batch in batches:
        ids = [name for name, _ in batch]
        assert seen.known(hashed(ids)).tolist() == [name in model for name in ids]
        new = {name: us for name, us in batch if name not in model}
        seen.add(hashed(list(new)), np.array(list(new.values()), np.int64))
        model |= new
        watermark = max([watermark, *(us for _, us in batch)])
        seen.forget(watermark)
        model = {name: us for name, us in model.items() if us >= watermark - far}
        old = sorted((us for us in model.values() if us < watermark), reverse=True)
        if len(old) > most:
            model = {name: us for name, us in model.items() if us >= old[most - 1]}
        assert len(seen) == len(model)
        again = Seen(far, most)
        again.restore(seen.columns())
        seen = again


def test_an_id_takes_24_bytes() -> None:
    seen = Seen(10)
    seen.add(hashed([f"e{number}" for number in range(100)]), np.zeros(100, np.int64))
    assert sum(each.nbytes for each in seen.columns().values()) == 2400


def test_the_hash_of_an_id_is_the_same_in_every_process() -> None:
    assert hashed(["e1"]).tolist() == [[16098416777067027887, 17188825020323765635]]
    assert hashed([]).shape == (0, 2)
