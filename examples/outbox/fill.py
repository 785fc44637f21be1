"""Write the films of examples/movies to the outbox of a shop: shop.db."""

import sqlite3
from contextlib import closing
from pathlib import Path

here = Path(__file__).parent
lines = (here.with_name("movies") / "events.jsonl").read_text(encoding="utf-8").splitlines()

with closing(sqlite3.connect(here / "shop.db")) as shop:
    shop.execute(
        "CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY AUTOINCREMENT, event TEXT)"
    )
    shop.executemany("INSERT INTO outbox (event) VALUES (?)", ((line,) for line in lines))
    shop.commit()
