"""How many cores, how much memory and disk a pipeline takes, from costs measured on this machine.

`workload` makes subscriptions and events with a given number of matches, `calibrate` runs them
through the pipeline on Spark and fits the costs, and `model` turns costs and a demand into a plan.
"""
