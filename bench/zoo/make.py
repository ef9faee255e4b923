#!/usr/bin/env python3
"""Makes the models of the zoo, which bench/models runs.

  python3 zoo/make.py [-o DIR] [-python PYTHON] [NAME...]

exports the named models, or all that are missing, into folders of DIR (tenure-zoo in the cache folder). A folder has
model.onnx, inputs.json, and the inputs' elements. The table of names is internal/suite/zoo.txt.

It needs torch and torchvision (Debian: python3-torchvision; PyPI: torch and torchvision). Weights are drawn from a seed
and batch normalisation is fitted to random pictures, so that numbers have a usual size in every layer. Quantised models
and those of float16 are made by ONNX Runtime's tools, which PYTHON has: the environment that ort.py installs.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
DERIVED = {"qdq", "dynamic", "int4", "f16"}


def table():
    """Reads the zoo's table: name -> (what makes it, arguments)."""
    rows = {}
    with open(os.path.join(HERE, "..", "internal", "suite", "zoo.txt")) as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                rows[words[0]] = (words[1], words[2:])
    return rows


def write_inputs(folder, names, arrays):
    """Writes the elements of the inputs, and inputs.json, which describes them."""
    kinds = {"float32": "f32", "int64": "i64"}
    described = []
    for i, (name, array) in enumerate(zip(names, arrays)):
        file = f"input{i}"
        array.tofile(os.path.join(folder, file))
        described.append({"name": name, "type": kinds[str(array.dtype)], "dims": list(array.shape), "file": file})
    with open(os.path.join(folder, "inputs.json"), "w") as out:
        json.dump(described, out, indent=1)


def export(folder, net, inputs):
    """Writes a torch module and its inputs, a dict of tensors in the order of the module's parameters."""
    import inspect
    import warnings

    import torch

    warnings.simplefilter("ignore")
    old = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    net.eval()
    # With gradients torch takes the path of attention that it can export.
    torch.onnx.export(net, tuple(inputs.values()), os.path.join(folder, "model.onnx"), opset_version=17,
                      input_names=list(inputs), do_constant_folding=True, **old)
    write_inputs(folder, list(inputs), [t.numpy() for t in inputs.values()])


def make(name, rows, directory, python):
    maker, arguments = rows[name]
    folder = os.path.join(directory, name)
    part = folder + ".part"  # a folder with its own name is whole
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    if maker in DERIVED:
        origin = os.path.join(directory, arguments[0])
        if not os.path.isdir(origin):
            raise RuntimeError(f"{name} is made of {arguments[0]}, which is missing in {directory}")
        subprocess.check_call([python, os.path.join(HERE, "derive.py"), maker, origin, part])
    else:
        import torch

        import nets

        torch.manual_seed(1)
        net, inputs = getattr(nets, maker)(*(int(a) if a.isdigit() else a for a in arguments))
        export(part, net, inputs)
    shutil.rmtree(folder, ignore_errors=True)
    os.rename(part, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", default=os.path.join(CACHE, "tenure-zoo"), metavar="DIR")
    parser.add_argument("-python", default=os.path.join(CACHE, "tenure-bench", "bin", "python"), metavar="PYTHON")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    rows = table()
    for name in args.names:
        if name not in rows:
            sys.exit(f"got {name}, want one of {', '.join(rows)}")
    os.makedirs(args.o, exist_ok=True)
    failed = []
    for name in args.names or [n for n in rows if not os.path.isdir(os.path.join(args.o, n))]:
        print(name, flush=True)
        try:
            make(name, rows, args.o, args.python)
        except Exception:  # the others are made nevertheless
            traceback.print_exc()
            failed.append(name)
    if failed:
        sys.exit("not made: " + " ".join(failed))


if __name__ == "__main__":
    main()
