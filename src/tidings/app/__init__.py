"""The command line and everything that only it needs: config, check, run, output and demo."""
