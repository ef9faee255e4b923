# Writes reference.safetensors with the format's own Python library:
#   pip install safetensors numpy && python3 make.py
import numpy as np
from safetensors.numpy import save_file

save_file(
    {
        "matrix": np.arange(6, dtype=np.float32).reshape(2, 3),
        "half": np.array([0.5, -2.0], dtype=np.float16),
        "flags": np.array([True, False, True]),
        "long": np.array([-1, 2**40], dtype=np.int64),
        "scalar": np.array(7, dtype=np.uint8),
        "empty": np.zeros((0, 4), dtype=np.float64),
    },
    "reference.safetensors",
    metadata={"format": "np", "note": "a < b"},
)
