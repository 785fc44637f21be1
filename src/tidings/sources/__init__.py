"""Where events come from: readers of message sources, which Spark and the local engine share.

`registry.open_reader` opens one by the name of its format; what its client library needs is loaded
only then.
"""
