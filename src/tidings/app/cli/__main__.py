"""`python -m tidings.app.cli`, which is the same as `tidings`."""

from tidings.app.cli import main

if __name__ == "__main__":
    main()
