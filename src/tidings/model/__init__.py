"""Records and what they hold: values, conditions, events, subscriptions, deliveries."""
