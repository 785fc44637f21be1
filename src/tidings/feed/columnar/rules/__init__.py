"""Rules in arrays: the stage between the windows of many subscribers and their deliveries."""
