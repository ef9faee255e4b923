"""Writes the files of this folder with numpy, and the values they hold as values.txtar.

Run it here after a change: python3 make.py
"""
import io
import numpy as np
from numpy.lib import format as fmt

ARRAYS = {
    "scalar": np.array(1.5, "<f4"),
    "f2": np.array([1.5, -0.25, np.inf], "<f2"),
    "f4_big": np.array([[1, -2.5], [3, 4]], ">f4"),
    "f8_fortran": np.asfortranarray(np.arange(24, dtype="<f8").reshape(2, 3, 4)),
    "i1": np.array([-128, 127], "i1"),
    "u1": np.array([0, 255], "u1"),
    "i2_big": np.array([-300, 300], ">i2"),
    "u2": np.array([65535], "<u2"),
    "i4_fortran_big": np.asfortranarray(np.array([[1, 2, 3], [4, 5, 6]], ">i4")),
    "u4": np.array([4294967295], "<u4"),
    "i8": np.array([[-9223372036854775808]], "<i8"),
    "u8": np.array([18446744073709551615], "<u8"),
    "bool": np.array([True, False, True]),
    "c8": np.array([1 - 2j, 0.5j], "<c8"),
    "c16_big": np.array([1 - 2j], ">c16"),
    "empty": np.zeros((2, 0, 3), "<f4"),
    "strided": np.arange(12, dtype="<i2").reshape(3, 4)[::2, 1::2],
}
UNSUPPORTED = {
    "object": np.array([{}], dtype=object),
    "date": np.array(["2024-01-01"], "M8[D]"),
    "record": np.zeros(1, [("a", "<f4")]),
    "void": np.zeros(1, "V2"),
}


def text(a):
    flat = np.ascontiguousarray(a).reshape(-1)
    return "%s %s\n%s\n" % (a.dtype.newbyteorder("=").name, list(a.shape), " ".join(str(v) for v in flat.tolist()))


values = "What numpy holds in each file: type, shape, elements in row-major order. Written by make.py.\n\n"
for name, a in ARRAYS.items():
    np.save(name + ".npy", a)
    values += "-- %s --\n%s" % (name, text(a))
for name, a in UNSUPPORTED.items():
    np.save("bad_" + name + ".npy", a)
np.save("text.npy", np.array([["a", "größe", ""], ["\U00010400", "b c", "d"]], ">U5"))
np.save("text_fortran.npy", np.asfortranarray(np.array([[b"a", b"bcd", b""], [b"e f", b"\xff", b"g"]])))
for version in [(1, 0), (2, 0), (3, 0)]:
    with open("version%d.npy" % version[0], "wb") as f:
        fmt.write_array(f, np.array([7, 8], "<i4"), version=version)
np.savez("stored.npz", first=ARRAYS["f4_big"], **{"with/slash": ARRAYS["bool"]})
np.savez_compressed("packed.npz", zeros=np.zeros(1000, "<i4"), scalar=ARRAYS["scalar"])
open("values.txtar", "w").write(values)
