"""Ways from one Python process to another, and the Python end of the one from Go.

peers.py tenure consume  receives tensors from the process that started it
peers.py tenure hold     reads how many tensors it is to hold, says "held" when it does, and holds them until its input ends
peers.py tenure lend N   offers so many tensors to a process that holds them, says "held" then, and goes on until its input ends
peers.py MODE SIZE       is a producer: for each line "COUNT IDLE SECONDS" on standard input it hands so many tensors to a consumer of its
                         own, at most for so long, and prints how many nanoseconds each took
"""

import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time

import numpy as np


def touch(x):
    if x[0] != x[-1]:
        raise ValueError(f"got {x[0]} and {x[-1]}, want the same")


def consume_tenure():
    import tenure

    owner = tenure.Owner(leases=1)
    for received in tenure.parent(owner):
        touch(received.array)
        received.close()


def hold_tenure():
    import tenure

    peer = tenure.parent(tenure.Owner(leases=1 << 20))
    held = [peer.receive() for _ in range(int(sys.stdin.readline()))]
    print("held", flush=True)
    sys.stdin.read()
    del held


def lend_tenure(count):
    import tenure

    owner = tenure.Owner()
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    child, peer = owner.spawn([sys.executable, __file__, "tenure", "hold"], **options)
    print(count, file=child.stdin, flush=True)
    for _ in range(int(count)):
        peer.offer(owner.empty(4096, "u1"))
    print(child.stdout.readline(), end="", flush=True)
    sys.stdin.read()
    child.stdin.close()
    child.wait()


def consume_pipe(pipe):
    while True:
        x = pipe.recv()
        if x is None:
            return
        touch(x)
        del x
        pipe.send_bytes(b"1")


def consume_shm(pipe):
    from multiprocessing import shared_memory

    known = {}
    while True:
        name, size, keep = pipe.recv()
        if name is None:
            return
        segment = known.get(name) or shared_memory.SharedMemory(name)
        x = np.frombuffer(segment.buf, np.uint8, size)
        touch(x)
        del x
        if keep:
            known[name] = segment
        else:
            segment.close()
        pipe.send_bytes(b"1")


def consume_torch(pipe):
    import torch.multiprocessing  # noqa: F401  (teaches pipes about tensors)

    consume_pipe(pipe)


def serve_grpc(pipe, address):
    from concurrent import futures

    import grpc

    def take(request, context):
        touch(np.frombuffer(request, np.uint8))
        return b"1"

    server = grpc.server(futures.ThreadPoolExecutor(1), options=GRPC)
    method = grpc.unary_unary_rpc_method_handler(take)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tensors", {"take": method}),))
    server.add_insecure_port(address)
    server.start()
    pipe.send(None)
    pipe.recv()
    server.stop(None).wait()


GRPC = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def by_pipe(pipe, x):
    def hand():
        pipe.send(x)
        pipe.recv_bytes()

    return hand, lambda: pipe.send(None)


def by_new_segment(pipe, x):
    from multiprocessing import shared_memory

    def hand():
        segment = shared_memory.SharedMemory(create=True, size=x.nbytes)
        np.frombuffer(segment.buf, np.uint8, x.nbytes)[:] = x
        pipe.send((segment.name, x.nbytes, False))
        pipe.recv_bytes()
        segment.close()
        segment.unlink()

    return hand, lambda: pipe.send((None, 0, False))


def by_segment(pipe, x):
    from multiprocessing import shared_memory

    segment = shared_memory.SharedMemory(create=True, size=x.nbytes)
    np.frombuffer(segment.buf, np.uint8, x.nbytes)[:] = x

    def hand():
        pipe.send((segment.name, x.nbytes, True))
        pipe.recv_bytes()

    def end():
        pipe.send((None, 0, False))
        segment.close()
        segment.unlink()

    return hand, end


def by_torch(pipe, x):
    import torch

    t = torch.from_numpy(x).share_memory_()

    def hand():
        pipe.send(t)
        pipe.recv_bytes()

    return hand, lambda: pipe.send(None)


def by_new_torch(pipe, x):
    import torch

    t = torch.from_numpy(x)

    def hand():
        pipe.send(t.clone())
        pipe.recv_bytes()

    return hand, lambda: pipe.send(None)


def by_grpc(pipe, x, address):
    import grpc

    pipe.recv()
    channel = grpc.insecure_channel(address, options=GRPC)
    call = channel.unary_unary("/tensors/take")

    def hand():
        call(x.tobytes(), wait_for_ready=True)

    def end():
        channel.close()
        pipe.send(None)

    return hand, end


MODES = {
    "pipe": (by_pipe, consume_pipe),
    "shm": (by_segment, consume_shm),
    "shm-new": (by_new_segment, consume_shm),
    "torch": (by_torch, consume_torch),
    "torch-new": (by_new_torch, consume_torch),
    "grpc": (by_grpc, serve_grpc),
}


def produce(mode, size):
    producer, consumer = MODES[mode]
    ours, theirs = multiprocessing.Pipe()
    folder = tempfile.TemporaryDirectory()
    more = (f"unix:{folder.name}/tensors",) if mode == "grpc" else ()
    child = multiprocessing.get_context("spawn").Process(target=consumer, args=(theirs, *more))
    child.start()
    theirs.close()
    hand, end = producer(ours, np.full(size, 7, np.uint8), *more)
    hand()
    print(json.dumps([os.getpid(), child.pid]), flush=True)
    for line in sys.stdin:
        count, idle, seconds = line.split()
        print(json.dumps(timed(hand, int(count), float(idle), float(seconds))), flush=True)
    end()
    child.join()
    folder.cleanup()


def timed(hand, count, idle, seconds):
    taken = []
    limit = time.monotonic() + seconds
    while len(taken) < count and (not taken or time.monotonic() < limit):
        if idle:
            time.sleep(idle)
        start = time.perf_counter_ns()
        hand()
        taken.append(time.perf_counter_ns() - start)
    return taken


if __name__ == "__main__":
    if sys.argv[1] == "tenure":
        {"consume": consume_tenure, "hold": hold_tenure, "lend": lend_tenure}[sys.argv[2]](*sys.argv[3:])
    else:
        produce(sys.argv[1], int(sys.argv[2]))
