"""`python -m tidings.app.cli` is `tidings`."""

from tidings.app.cli import main

if __name__ == "__main__":
    main()
