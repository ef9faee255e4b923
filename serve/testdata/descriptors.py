"""Compares the descriptors of a server's services with those of other packages.
The arguments are files with descriptors, each behind its .proto file. Of
messages that others have, a server may leave fields out, but not change them."""

import pathlib
import sys
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool
from tritonclient.grpc import model_config_pb2, service_pb2


def messages(file):
    """The messages of a file by their names, also those in others."""
    found = {}

    def walk(prefix, list):
        for m in list:
            found[prefix + m.name] = m
            walk(prefix + m.name + ".", m.nested_type)

    walk("", file.message_type)
    return found


def fields(m):
    return {f.name: (f.number, f.type, f.label, f.type_name, f.HasField("oneof_index") and m.oneof_decl[f.oneof_index].name) for f in m.field}


def values(list):
    return {e.name: [(v.name, v.number) for v in e.value] for e in list}


theirs, services = {}, {}
for module in (service_pb2, model_config_pb2):
    f = descriptor_pb2.FileDescriptorProto()
    module.DESCRIPTOR.CopyToProto(f)
    theirs |= messages(f)
    services |= {s.name: s for s in f.service}
    enums = values(f.enum_type)

for proto, path in zip(sys.argv[1::2], sys.argv[2::2]):
    ours = descriptor_pb2.FileDescriptorProto.FromString(pathlib.Path(path).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(ours)
    pool.FindFileByName(ours.name)  # everything that it names is there
    if ours.package == "inference":
        for name, m in messages(ours).items():
            assert fields(m).items() <= fields(theirs[name]).items(), (name, fields(m), fields(theirs[name]))
            assert values(m.enum_type).items() <= values(theirs[name].enum_type).items(), name
            assert m.options.map_entry == theirs[name].options.map_entry, name
        assert values(ours.enum_type) == enums, values(ours.enum_type)
        calls = {m.name: str(m) for m in services["GRPCInferenceService"].method}
        assert {m.name for m in ours.service[0].method} == calls.keys(), calls.keys()
        for m in ours.service[0].method:
            their = [x for x in services["GRPCInferenceService"].method if x.name == m.name][0]
            assert (m.input_type, m.output_type, m.client_streaming, m.server_streaming) == (their.input_type, their.output_type, their.client_streaming, their.server_streaming), m
    try:
        from grpc_tools import protoc
    except ImportError:
        print(ours.name, "passed, without protoc")
        continue
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / ours.name).write_text(pathlib.Path(proto).read_text())
        assert protoc.main(["protoc", "-I" + folder, "--descriptor_set_out=" + folder + "/set", folder + "/" + ours.name]) == 0
        compiled = descriptor_pb2.FileDescriptorSet.FromString((pathlib.Path(folder) / "set").read_bytes()).file[0]
        for m in messages(compiled).values():
            for f in m.field:
                f.ClearField("json_name")
        for s in compiled.service:
            for m in s.method:
                m.ClearField("options")
        assert compiled == ours, (compiled, ours)
    print(ours.name, "passed")
