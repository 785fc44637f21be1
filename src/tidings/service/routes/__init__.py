"""The paths of the service: each handler reads its request, calls one function, and answers."""
