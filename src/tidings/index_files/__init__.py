"""A matcher in files that many processes map: sealed bases, changes behind them, versions, pins."""
