"""Why another server has not given an embedding. Their names become the reasons of observations; no text quotes what
was sent or what the server said about it.

Too much to do is `router.inference.executor.Overloaded`, as everywhere.
"""

from __future__ import annotations


class RemoteSetupError(Exception):
    """Files or a server that do not fit what the policy says; the text is for the operator."""


class RemoteError(Exception):
    """The server gave no embedding; the text names the server, the model and gRPC's code."""


class RemoteNoAnswerError(RemoteError):
    """Nothing is known of the model: it was not asked, or has not answered."""


class RemoteUnavailableError(RemoteNoAnswerError):
    """It can't be reached, or says that it is not there for now."""


class RemoteTimeoutError(RemoteNoAnswerError, TimeoutError):
    """It has not answered in time."""


class RemoteRefusedError(RemoteNoAnswerError):
    """It does not do what it is asked: no such model, no right to ask, an input that it does not take, a fault.

    `unknown` is set where it does not know the method.
    """

    def __init__(self, told: str, unknown: bool = False) -> None:
        super().__init__(told)
        self.unknown = unknown


class RemoteAnswerError(RemoteError):
    """It answered, and not with embeddings of this model."""
