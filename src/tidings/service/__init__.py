"""The HTTP service: subscribe, publish and receive over HTTP, live and durable.

`create_app` returns the ASGI application of a store, and `Pipeline` is the durable engine that
turns its publications into notifications; they run in separate processes and share only the store.
"""
