"""Writes the attributes of the operators that ONNX Runtime knows in opset 6 or a later one, one operator a line, behind the number of its
operands (20 where there is no end).

python attributes.py > attributes.txt
"""
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as binding

versions = {}
for schema in binding.get_all_operator_schema():
    if schema.domain in ("", "com.microsoft", "ai.onnx.ml"):
        versions.setdefault("::".join(filter(None, [schema.domain, schema.name])), []).append(schema)
print(f"# ONNX Runtime {onnxruntime.__version__}: operator, most operands, attributes; written by attributes.py")
for name, schemas in sorted(versions.items()):
    operands, attributes = 0, set()
    for schema in schemas:
        replaced = any(schema.since_version < s.since_version <= 6 for s in schemas)
        if "::" in name or not replaced:
            operands = max(operands, min(schema.max_input, 20))
            attributes |= set(schema.attributes)
    print(name, operands, *sorted(attributes))
