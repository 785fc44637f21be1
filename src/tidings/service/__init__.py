"""The HTTP service: subscribe, publish and receive over HTTP, live and durable.

`create_app` makes the ASGI application of a store, and `Pipeline` the durable engine that turns its
publications into notifications; they run in separate processes and share only the store.
"""
