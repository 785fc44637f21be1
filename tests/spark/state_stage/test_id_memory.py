"""The memory of ids agrees with a dict of times."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidings.spark.state_stage.id_memory import IdMemory, hash_ids

steps = st.lists(st.tuples(st.text("abc", max_size=2), st.integers(0, 9)), max_size=12)


@given(st.lists(steps, max_size=6), st.integers(0, 6), st.integers(1, 4))
def test_it_contains_what_a_dict_contains(
    batches: list[list[tuple[str, int]]], remember_us: int, capacity: int
) -> None:
    memory, model, watermark = IdMemory(remember_us, capacity), dict[str, int](), 0
    for batch in batches:
        ids = [name for name, _ in batch]
        assert memory.contains(hash_ids(ids)).tolist() == [name in model for name in ids]
        new = {name: us for name, us in batch if name not in model}
        memory.add(hash_ids(list(new)), np.array(list(new.values()), np.int64))
        model |= new
        watermark = max([watermark, *(us for _, us in batch)])
        memory.forget(watermark)
        model = {name: us for name, us in model.items() if us >= watermark - remember_us}
        old = sorted((us for us in model.values() if us < watermark), reverse=True)
        if len(old) > capacity:
            model = {name: us for name, us in model.items() if us >= old[capacity - 1]}
        assert len(memory) == len(model)
        again = IdMemory(remember_us, capacity)
        again.restore(memory.columns())
        memory = again


def test_an_id_takes_24_bytes() -> None:
    memory = IdMemory(10)
    memory.add(hash_ids([f"e{number}" for number in range(100)]), np.zeros(100, np.int64))
    assert sum(each.nbytes for each in memory.columns().values()) == 2400


def test_the_hash_of_an_id_is_the_same_in_every_process() -> None:
    assert hash_ids(["e1"]).tolist() == [[16098416777067027887, 17188825020323765635]]
    assert hash_ids([]).shape == (0, 2)
