"""`tidings run` for spark-submit, whose master and settings override those of the config.

submit=$(python -c "import tidings.app.cli.spark_submit as it; print(it.__file__)")
spark-submit --master spark://node:7077 "$submit" pipeline.toml --log json
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    # spark-submit puts the folder of this file first on the path, where `app` would be importable.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != Path(__file__).parent]

from tidings.app.cli import app

if __name__ == "__main__":
    app(["run", *sys.argv[1:]], prog_name="tidings")
