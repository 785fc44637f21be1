"""What a kill leaves in a checkpoint that has not begun: Spark would refuse it for ever.

A process that dies while it logs its very first batch leaves a temporary file behind. Nothing has
run by then, but Spark takes the folder for that of another query, since it is not empty.
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def clear_unborn(checkpoint: str | Path) -> list[str]:
    """Remove temporary files from the log of a checkpoint without batches; give their names.

    A checkpoint that has begun is left as it is, and so is one that is not on a local disk.
    """
    address = urlsplit(str(checkpoint))
    if address.scheme not in ("", "file"):
        return []
    place = Path(unquote(address.path) if address.scheme else checkpoint)
    logs = [place / name for name in ("offsets", "commits")]
    files = [each for log in logs if log.is_dir() for each in log.iterdir()]
    if not all(each.name.startswith(".") for each in files):
        return []
    left = [each for each in files if ".tmp" in each.suffixes]
    for each in left:
        each.unlink()
    return sorted(each.name for each in left)
