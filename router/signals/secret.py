"""`secret`: passwords, keys and tokens, anywhere in the request.

    secret:
      credential: {}
      certain_key: {threshold: 0.9, read_images: true}

Found are keys with a vendor's shape (130 of them, detect-secrets' rules and more: AWS, Google, Azure, GitHub, Slack,
Stripe, OpenAI, Anthropic and others), private keys with their body, JSON web tokens, passwords in URLs, connection
strings, `.netrc`, `.pgpass`, Docker's logins and options of commands, what a name such as `db_password` or `api_key` is
set to, and the setting of a vendor of keys, such as `datadog`, if it looks as if a machine or a careful person made it
up. Placeholders are no secrets: `xxxx`, `${TOKEN}`, `<your key>`; a key that says `EXAMPLE` is half of one, at 0.5. All
of the request is read: every turn and role, tool calls, tool results, tool definitions, names of files and, with
`read_images`, what is written in images.

An image without strokes that could be letters is let be after a glance of milliseconds. In others lines are found,
which takes up to 0.7 seconds, and read, up to 16,000 letters, which takes 1.6 milliseconds each; one with more text
can't be read, and the answer is unknown then. What was read is searched row by row and, where other words stand beside
it, block by block; what a terminal cut in two is joined.

Costs about thirty microseconds a kilobyte, in linear time; a text made of beginnings of keys a hundred times as much;
images a reading each that is not cached. Scores are set by hand and not calibrated: 0.95 a shape, 0.85 a token or a
password in a URL, 0.7 to 0.8 a value by its name, 0.4 and less what is random and has no name, such as digests have. It
can't see passwords that are plain words, secrets that are encoded, cut in pieces or shorter than 6 characters, and
whether a key still works. Keys that may be published, as Google's are for maps, look like others; hashes of passwords
are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from pydantic import Field

from router.inference.reading import ImageReader
from router.request.view import RequestView, Role
from router.signals.base import Cost, Observation, SignalName
from router.signals.gathering import Gathering, look_through
from router.signals.places import ALL_ROLES
from router.signals.resources import Resources, SignalSetupError
from router.signals.scan import Claims, Finding, scan
from router.signals.secret_rules import ShapeFinder, StructureFinder
from router.signals.secret_tools import ToolFinder
from router.signals.secret_words import AssignmentFinder
from router.signals.settings import SignalSettings, Threshold


class SecretSettings(SignalSettings):
    """Settings of a `secret` signal."""

    threshold: Threshold = Field(0.6, description="Score from which on it matches.")
    roles: tuple[Role, ...] = Field(
        ALL_ROLES, min_length=1, description="Roles whose parts are read; all of them by default."
    )
    read_images: bool = Field(False, description="Whether what is written inside images is read too.")

    @property
    def reads_images(self) -> bool:
        """As the policy says."""
        return self.read_images


class SecretFinder:
    """Finds all secrets in a window, the surest kind first, so that one is not told twice."""

    def __init__(self) -> None:
        self._shapes = ShapeFinder()
        self._structures = StructureFinder()
        self._tools = ToolFinder()
        self._assignments = AssignmentFinder()

    def find(self, _: str, data: bytes) -> Iterator[Finding]:
        """Findings; see `scan.Finder`."""
        claims = Claims(len(data))
        for start, end, label, score in self._everything(data):
            if claims.free(start, end):
                claims.take(start, end)
                yield Finding(start, end, label, score)

    def _everything(self, data: bytes) -> Iterator[tuple[int, int, str, float]]:
        yield from self._shapes.find(data)
        yield from self._structures.find(data)
        yield from self._tools.find(data)
        yield from self._assignments.find(data)


class SecretSignal:
    """How sure it is that the request has a secret."""

    def __init__(self, name: SignalName, settings: SecretSettings, reader: ImageReader | None = None) -> None:
        self.name = name
        self._settings = settings
        self._reader = reader
        self._sources = [partial(scan, find=SecretFinder().find)]

    @property
    def cost(self) -> Cost:
        """Heuristic, unless a reader has to be asked."""
        return Cost.HEURISTIC if self._reader is None else Cost.READING

    async def prepare(self) -> None:
        """Nothing to do: the patterns are compiled."""

    async def observe(self, view: RequestView) -> Observation:
        """Matched if a finding reaches the threshold; unknown if none does and an image could not be read.

        Once there are as many as are cited, nothing more is read: the score may be higher still.
        """
        found = Gathering(self._settings.threshold)
        return await look_through(view, self._settings.roles, self._sources, self._reader, found)


def build_secret(name: SignalName, settings: SecretSettings, resources: Resources) -> SecretSignal:
    """The signal; SignalSetupError where it is to read images and nothing can."""
    if not settings.read_images:
        return SecretSignal(name, settings)
    if resources.reader is None:
        raise SignalSetupError(f"{name}: `read_images` needs a reader of text in images: pip install 'pointsman[ocr]'")
    return SecretSignal(name, settings, resources.reader)
