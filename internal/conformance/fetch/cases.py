"""Writes the test cases of the installed package onnx as archives, one per kind: NAME/model.onnx, NAME/test_data_set_K/{input,output}_I.pb.

cases.py FOLDER reads "ARCHIVE<tab>CASE" lines from standard input: no other case is written.
"""

import os
import sys
import zipfile

import numpy
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = {"onnx-node": "node", "onnx-simple": "simple", "onnx-pytorch-converted": "pytorch-converted", "onnx-pytorch-operator": "pytorch-operator"}


def encoded(value, declared):
    """Returns the bytes of an input or output, as onnx's own tool writes them."""
    if isinstance(value, TensorProto):
        return value.SerializeToString()
    for kind, convert in (("map_type", numpy_helper.from_dict), ("sequence_type", numpy_helper.from_list), ("optional_type", numpy_helper.from_optional)):
        if declared.type.HasField(kind):
            return convert(value, declared.name).SerializeToString()
    return numpy_helper.from_array(numpy.asarray(value), declared.name).SerializeToString()


def parts(case):
    """Yields the files of a case, by their names in its folder."""
    if case.model_dir is None:
        yield "model.onnx", case.model.SerializeToString(deterministic=True)
        for k, (inputs, outputs) in enumerate(case.data_sets):
            for kind, values, declared in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
                for i, value in enumerate(values):
                    yield f"test_data_set_{k}/{kind}_{i}.pb", encoded(value, declared[i])
        return
    for folder, _, names in os.walk(case.model_dir):
        for name in names:
            if name == "model.onnx" or name.endswith(".pb"):
                path = os.path.join(folder, name)
                with open(path, "rb") as f:
                    yield os.path.relpath(path, case.model_dir).replace(os.sep, "/"), f.read()


def main():
    wanted = {}
    for line in sys.stdin:
        archive, name = line.rstrip("\n").split("\t")
        wanted.setdefault(archive, set()).add(name)
    for archive, names in wanted.items():
        cases = {case.name: case for case in load_model_tests(kind=KINDS[archive])}
        with zipfile.ZipFile(os.path.join(sys.argv[1], archive + ".zip"), "w", zipfile.ZIP_DEFLATED) as z:
            for name in sorted(names & cases.keys()):
                for part, data in sorted(parts(cases[name])):
                    z.writestr(zipfile.ZipInfo(f"{name}/{part}"), data)


main()
