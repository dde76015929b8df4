"""Texts to the heads' probabilities, window by window, as they are served: encoder, features, `heads.onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.text.calibrate import share
from models.text.encoder import Encoder, Window
from models.text.export import feed, probabilities, session


class Judge:
    """The encoder and a graph of heads; `about` is the manifest's list of heads."""

    def __init__(self, encoder: Encoder, graph: Path, about: Sequence[dict[str, Any]]) -> None:
        self.encoder = encoder
        self.about = {head["name"]: head for head in about}
        self._session = session(graph)

    def threshold(self, name: str) -> float:
        """The head's default."""
        return float(self.about[name]["threshold"])

    def windows(self, windows: Sequence[Window], names: Sequence[str]) -> list[dict[str, NDArray[np.float64]]]:
        """Each window's probabilities by head."""
        found: list[dict[str, NDArray[np.float64]]] = [{} for _ in windows]
        for index, hidden in self.encoder.hidden(windows):
            logits = self._session.run(list(names), feed(hidden, windows[index]))
            for name, each in zip(names, logits, strict=True):
                found[index][name] = probabilities(self.about[name], each[0])
        return found

    def texts(self, texts: Sequence[str], name: str) -> NDArray[np.float64]:
        """(n, labels): each text's windows as the manifest joins them."""
        several = [self.encoder.windows(text) for text in texts]
        flat = self.windows([window for windows in several for window in windows], [name])
        rows, at = [], 0
        for windows in several:
            own = np.stack([each[name] for each in flat[at : at + len(windows)]])
            at += len(windows)
            weights = np.array([max(len(window.characters), 1) for window in windows], float)
            rows.append(
                own.max(0) if self.about[name]["windows"] == "max" else np.average(own, axis=0, weights=weights)
            )
        return np.stack(rows)


def above(found: NDArray[np.float64], bound: float) -> dict[str, Any]:
    """How many of the texts' probabilities reach the bound."""
    return share(int((found >= bound).sum()), len(found))
