"""A runtime for MLServer that serves one ONNX graph; imported by MLServer's own Python, and by nothing of ours."""

from __future__ import annotations

import onnxruntime as ort
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse
from mlserver.utils import get_model_uri


class OnnxModel(MLModel):
    async def load(self) -> bool:
        self._session = ort.InferenceSession(await get_model_uri(self.settings), providers=["CPUExecutionProvider"])
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        feed = {each.name: NumpyCodec.decode_input(each) for each in payload.inputs}
        names = [each.name for each in self._session.get_outputs()]
        found = self._session.run(names, feed)
        outputs = [NumpyCodec.encode_output(name, rows) for name, rows in zip(names, found, strict=True)]
        return InferenceResponse(model_name=self.name, outputs=outputs)
