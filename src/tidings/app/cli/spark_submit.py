"""`tidings run` for spark-submit, whose master and settings win over those of the config.

spark-submit --master spark://node:7077 "$(tidings run --submit-file)" pipeline.toml --log json
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # spark-submit puts the folder of this file first, where modules of a command do not belong.
    sys.path[:] = [each for each in sys.path if Path(each).resolve() != Path(__file__).parent]

from tidings.app.cli import app

if __name__ == "__main__":
    app(["run", *sys.argv[1:]], prog_name="tidings")
