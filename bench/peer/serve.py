"""The model of a release behind FastAPI with ONNX Runtime: the routes that bench/serve asks, and nothing else.

    python serve.py FOLDER PORT

FOLDER holds `model.onnx` (of `progap export --to onnx`), `data.npz` (of `progap data convert`) and the release in
`release`.
"""

import pathlib
import sys

import numpy as np
import onnxruntime
import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

FOLDER, PORT = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def features(archive):
    if "x" in archive:
        return archive["x"].astype(np.float32)
    rows, columns = archive["x_shape"]
    dense = np.zeros((rows, columns), np.float32)
    starts = archive["x_indptr"]
    at = np.repeat(np.arange(rows), np.diff(starts))
    dense[at, archive["x_indices"]] = archive["x_data"]
    return dense


session = onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])
inputs = {}
for tensor in session.get_inputs():
    if tensor.name == "features":
        inputs[tensor.name] = features(np.load(FOLDER / "data.npz"))
    else:
        number = tensor.name.removeprefix("aggregate-")
        inputs[tensor.name] = np.load(FOLDER / "release" / "aggregates" / f"{number}.npy")
classes = session.get_modelmeta().custom_metadata_map["classes"]
app = FastAPI()


def predict(nodes):
    return session.run(["probabilities"], {name: values[nodes] for name, values in inputs.items()})[0]


@app.get("/v2/health/ready")
def ready():
    return {"ready": True}


@app.get("/v1/nodes/{node}")
def one(node: int):
    if not 0 <= node < len(inputs["features"]):
        raise HTTPException(404)
    row = predict([node])[0]
    return {"id": str(node), "class": int(row.argmax()), "probabilities": row.tolist()}


class Tensor(BaseModel):
    name: str
    datatype: str
    shape: list[int]
    data: list[str]


class Request(BaseModel):
    inputs: list[Tensor]


@app.post("/v2/models/people/infer")
def infer(request: Request):
    rows = predict([int(node) for node in request.inputs[0].data])
    shape = list(rows.shape)
    outputs = [
        {"name": "class", "datatype": "BYTES", "shape": shape[:1], "data": [str(c) for c in rows.argmax(1)]},
        {"name": "probabilities", "datatype": "FP32", "shape": shape, "data": rows.ravel().tolist()},
    ]
    return {"model_name": "people", "outputs": outputs}


uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning", access_log=False, workers=1)
