"""Directories, locks and sockets of names."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Callable, List

import pytest
from conftest import eventually

import tenure
from tenure import listener as listeners
from tenure import names

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def test_where_the_directory_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TENURE_SHARE_DIR", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    if not os.path.isdir(f"/run/user/{os.getuid()}"):
        assert names.directory() == str(tmp_path / f"tenure-{os.getuid()}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert names.directory() == str(tmp_path / "tenure")
    monkeypatch.setenv("TENURE_SHARE_DIR", str(tmp_path / "s"))
    assert names.directory() == str(tmp_path / "s")
    made = names.directory(str(tmp_path / "d"))
    assert made == str(tmp_path / "d") and os.stat(made).st_mode & 0o7777 == 0o700


def test_a_directory_that_two_make_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "above" / "d"
    mkdir = os.mkdir

    def other_first(at: Any, mode: int = 0o777) -> None:
        if os.path.isdir(os.path.dirname(at)):
            mkdir(at, mode)  # as another process does
        mkdir(at, mode)

    monkeypatch.setattr(os, "mkdir", other_first)
    assert names.directory(str(path)) == str(path) and path.is_dir()


def test_directories_that_others_could_use(tmp_path: Path) -> None:
    for mode in (0o755, 0o701, 0o710, 0o2770):
        path = tmp_path / f"{mode:o}"
        path.mkdir()
        path.chmod(mode)
        with pytest.raises(tenure.PlaceError, match=f"mode {mode:04o}, want"):
            names.directory(str(path))
    good = tmp_path / "good"
    good.mkdir(0o700)
    (tmp_path / "link").symlink_to(good)
    (tmp_path / "file").touch(0o700)
    for name in ("link", "file", "file/below"):
        with pytest.raises(tenure.PlaceError):
            names.directory(str(tmp_path / name))


def test_directories_that_nobody_else_enters(tmp_path: Path) -> None:
    """Also below a folder whose set-group-ID bit is inherited: as the Go package does."""
    above = tmp_path / "group"
    above.mkdir()
    above.chmod(0o2770)
    made = names.directory(str(above / "a" / "b"))
    assert os.stat(made).st_mode & 0o777 == 0o700 and os.stat(above / "a").st_mode & 0o777 == 0o700
    for mode in (0o700, 0o2700, 0o1700, 0o4700):
        os.chmod(made, mode)
        assert names.directory(made) == made
    with tenure.Owner() as own, own.listen("x", made), tenure.attach("x", made):
        pass


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "n" * 65, "a b", "ä", "..", "a\n"])
def test_bad_names(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="want 1 to 64"):
        tenure.attach(name, str(tmp_path / "d"))


def test_a_long_path(tmp_path: Path) -> None:
    with tenure.Owner() as own, pytest.raises(tenure.PlaceError, match="at most 107"):
        own.listen("n" * 64, str(tmp_path / ("d" * 60)))


def test_nobody_there(tmp_path: Path) -> None:
    d = str(tmp_path / "d")
    with pytest.raises(tenure.GoneError, match="no process listens under 'x'"):
        tenure.attach("x", d)
    dead = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dead.bind(os.path.join(d, "x.sock"))
    dead.close()
    with pytest.raises(tenure.GoneError, match="no process listens"):
        tenure.attach("x", d)
    with tenure.Owner() as own, own.listen("x", d):  # what is stale is replaced
        pass
    assert os.listdir(d) == []


def test_one_listener_per_name(tmp_path: Path) -> None:
    d = str(tmp_path / "d")
    with tenure.Owner() as own:
        first = own.listen("x", d)
        assert os.stat(first.path).st_mode & 0o777 == 0o600
        with pytest.raises(tenure.NameTakenError):
            own.listen("x", d)
        own.listen("y", d).close()
        first.close()
        first.close()
        own.listen("x", d).close()
    assert os.listdir(d) == []


def test_listeners_in_turn(tmp_path: Path) -> None:
    """Eight threads fight for one name: never two have it, and everybody gets it."""
    d = str(tmp_path / "d")
    names.directory(d)
    inside: List[int] = []
    most: List[int] = []

    def fight(n: int) -> None:
        own = tenure.Owner()
        for _ in range(10):
            while True:
                try:
                    listener = own.listen("x", d)
                    break
                except tenure.NameTakenError:
                    pass
            inside.append(n)
            most.append(len(inside))
            inside.remove(n)
            listener.close()

    threads = [threading.Thread(target=fight, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert max(most) == 1 and len(most) == 80


def test_a_killed_listener_leaves_its_name_free(tmp_path: Path) -> None:
    d = str(tmp_path / "d")
    code = f"import tenure, time; l = tenure.Owner().listen('x', {d!r}); print('ready', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env())
    assert child.stdout is not None and child.stdout.readline() == b"ready\n"
    with tenure.Owner() as own:
        with pytest.raises(tenure.NameTakenError):
            own.listen("x", d)
        child.kill()
        child.wait()
        child.stdout.close()
        assert sorted(os.listdir(d)) == ["x.lock", "x.sock"]
        with own.listen("x", d):
            pass
    assert os.listdir(d) == []


def env(**more: str) -> "dict[str, str]":
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent), **more}


def test_closing_ends_accept(tmp_path: Path) -> None:
    ended: List[Any] = []
    with tenure.Owner() as own:
        listener = own.listen("x", str(tmp_path / "d"))
        t = threading.Thread(target=lambda: ended.extend(listener) or ended.append("over"))
        t.start()
        listener.close()
        t.join(10)
        assert ended == ["over"]
        with pytest.raises(tenure.ClosedError):
            listener.accept()


def test_accept_in_time(tmp_path: Path) -> None:
    with tenure.Owner() as own, own.listen("x", str(tmp_path / "d")) as listener:
        with pytest.raises(tenure.Timeout):
            listener.accept(0.02)


def attached(d: str, n: int) -> Callable[[], List[Any]]:
    """So many clients at once, each on a thread; what is returned waits for their peers or errors."""
    got: List[Any] = []

    def attach() -> None:
        try:
            got.append(tenure.attach("x", d, owner=own, timeout=30))
        except Exception as e:
            got.append(e)

    own = tenure.Owner()
    threads = [threading.Thread(target=attach) for _ in range(n)]
    for t in threads:
        t.start()

    def result() -> List[Any]:
        for t in threads:
            t.join()
        own.close()
        return got

    return result


def test_more_clients_than_a_queue_used_to_take(tmp_path: Path) -> None:
    """While the program does something else than accept."""
    d = str(tmp_path / "d")
    with tenure.Owner() as own, own.listen("x", d) as listener:
        clients = attached(d, 200)()
        assert [c for c in clients if not isinstance(c, tenure.Peer)] == []
        peers = [listener.accept(10) for _ in clients]
        assert len({p.connection for p in peers}) == 200
        clients[0].close()
        for p in peers:
            p.close()


def test_a_full_queue_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_BACKLOG", 1)
    monkeypatch.setattr(listeners, "_READY", 1)
    d = str(tmp_path / "d")
    with tenure.Owner() as own, own.listen("x", d) as listener:
        result = attached(d, 20)
        peers = [listener.accept(20) for _ in range(20)]
        assert [c for c in result() if not isinstance(c, tenure.Peer)] == []
        for p in peers:
            p.close()


def test_a_queue_that_stays_full(tmp_path: Path) -> None:
    d = names.directory(str(tmp_path / "d"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as deaf, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as first:
        deaf.bind(os.path.join(d, "x.sock"))
        deaf.listen(0)
        first.connect(os.path.join(d, "x.sock"))
        with pytest.raises(tenure.Timeout, match="no room for another connection"):
            tenure.attach("x", d, timeout=0.02)


def test_silent_connections_shut_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "_GREETINGS", 4)
    d = str(tmp_path / "d")
    with tenure.Owner() as own, own.listen("x", d) as listener:
        silent = [socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(12)]
        for sock in silent:
            sock.connect(listener.path)
        with tenure.attach("x", d) as peer:
            assert listener.accept(10).pid == peer.pid
        eventually(lambda: len(listener._greetings) == 3)  # a fourth made room for the honest one
        for sock in silent:
            sock.close()
        eventually(lambda: not listener._greetings)
        with tenure.attach("x", d):
            listener.accept(10).close()


def test_peers_that_nobody_accepted(tmp_path: Path) -> None:
    d = str(tmp_path / "d")
    with tenure.Owner() as own:
        with own.listen("x", d):
            own.publish("w", [1, 2, 3])
            peer = tenure.attach("x", d)
            assert peer.get("w", 10).array.tolist() == [1, 2, 3]  # it is served all the same
        with pytest.raises(tenure.EndedError):
            peer.receive(10)
        peer.close()


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    """Newcomers wait in the system's queue until there is one."""
    d = str(tmp_path / "d")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with tenure.Owner() as own, own.listen("x", d) as listener:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            sock.connect(listener.path)
            eventually(lambda: listener._starved)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with tenure.connect(sock, timeout=20):
            listener.accept(20).close()


def test_parent_without_a_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    for text in ("", "x", "-1", "900"):
        monkeypatch.setenv("TENURE_SHARE_FD", text)
        with pytest.raises(tenure.PlaceError, match="TENURE_SHARE_FD"):
            tenure.parent()


def test_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    for call in (tenure.Owner, tenure.pair, tenure.parent, lambda: tenure.attach("x")):
        with pytest.raises(tenure.UnsupportedError, match="want linux"):
            call()


def test_nothing_is_inherited(tmp_path: Path) -> None:
    """A child that is started by exec has none of our descriptors."""
    with tenure.Owner() as own, own.listen("x", str(tmp_path / "d")) as listener:
        got: List[tenure.Peer] = []
        t = threading.Thread(target=lambda: got.append(listener.accept(10)))
        t.start()
        with tenure.attach("x", str(tmp_path / "d")) as peer:
            t.join()
            got[0].offer(own.empty(5000))
            held = peer.receive(5)
            code = "import os; print([p for p in (os.readlink('/proc/self/fd/' + f) for f in os.listdir('/proc/self/fd') if int(f) > 2) if '/proc' not in p])"
            text = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True, text=True).stdout
            ours = [line for line in text.split(",") if "memfd:tenure" in line or ".lock" in line or "eventpoll" in line or "eventfd" in line]
            assert ours == []
            held.close()
            del held
            got[0].close()
            eventually(lambda: peer.closed)
