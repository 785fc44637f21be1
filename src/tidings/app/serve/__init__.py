"""The service on one machine: a web server and a pipeline, started and stopped together."""
