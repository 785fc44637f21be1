"""Warming up compiles what engines and stages use, and says where it is."""

import re

from tidings.app.warm import WarmCache, warm_up
from tidings.compiled.kernel_cache import cache_folder


def test_every_step_is_counted_and_the_folder_is_told():
    *told, last = warm_up()
    numbers = re.findall(r"compiling once, (\d+) of (\d+): ", "\n".join(map(str, told)))
    assert numbers == [(str(n), str(len(told))) for n in range(1, len(told) + 1)]
    assert isinstance(last, WarmCache)
    assert last.folder.parent == cache_folder()
    assert str(last.folder) in str(last)
