"""OpIndex: predicates grouped by attribute and operator, counted per subscription."""
