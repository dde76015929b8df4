"""A gRPC server over HTTP/2 for the few clients that a worker has: Envoys, probes, and whoever asks to explain.

Written for the length of the path from bytes to handler: frames are read and answered in the callback that received
them, and one task serves a call. HPACK is the `hpack` library's. What a method does is its handler's.
"""
