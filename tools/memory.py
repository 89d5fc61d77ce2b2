#!/usr/bin/env python3
"""Memory of a server with many jobs, and with many idle connections.

usage: memory.py [--jobs N] [--body BYTES] [--conns N] NAME=COMMAND ...

{host} and {port} in COMMAND are filled in. For each server: RSS before, with --jobs ready jobs of
--body bytes in one tube, and after all are deleted; then, in a fresh process, with --conns idle
connections. RSS is that of the server's process and its descendants. Python 3 standard library only.
"""
import argparse, os, resource, shlex, socket, subprocess, sys, time

HOST = "127.0.0.1"
BATCH = 1000


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def children(pid):
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            found += [int(p) for p in f.read().split()]
    return found


def rss(pid):
    """Bytes of RSS of the process and its descendants."""
    with open("/proc/%d/statm" % pid) as f:
        own = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return own + sum(rss(child) for child in children(pid))


class Server:
    def __init__(self, command):
        self.port = free_port()
        self.process = subprocess.Popen(shlex.split(command.format(host=HOST, port=self.port)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while True:
            if self.process.poll() is not None:
                sys.exit("the server ended at once: %s" % command)
            try:
                self.connect().close()
                return
            except ConnectionError:
                if time.monotonic() > end:
                    self.stop()
                    sys.exit("the server does not listen: %s" % command)
                time.sleep(0.02)

    def connect(self):
        return socket.create_connection((HOST, self.port), 60)

    def rss(self):
        return rss(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()


def lines(stream, count, prefix):
    found = []
    for _ in range(count):
        line = stream.readline()
        if not line.startswith(prefix):
            sys.exit("wanted %r, got %r" % (prefix, line))
        found.append(line)
    return found


def with_jobs(command, jobs, size):
    """RSS before, at the peak, after."""
    server = Server(command)
    try:
        client = server.connect()
        stream = client.makefile("rb")
        before = server.rss()
        put = b"put 0 0 60 %d\r\n%s\r\n" % (size, b"x" * size)
        ids = []
        for at in range(0, jobs, BATCH):
            count = min(BATCH, jobs - at)
            client.sendall(put * count)
            ids += [line.split()[1] for line in lines(stream, count, b"INSERTED ")]
        peak = server.rss()
        for at in range(0, jobs, BATCH):
            batch = ids[at:at + BATCH]
            client.sendall(b"".join(b"delete %s\r\n" % i for i in batch))
            lines(stream, len(batch), b"DELETED")
        time.sleep(1)
        return before, peak, server.rss()
    finally:
        server.stop()


def with_conns(command, count):
    """Bytes of RSS for each of `count` idle connections, which all sent a command once."""
    server = Server(command)
    try:
        before = server.rss()
        conns = []
        for _ in range(count):
            conn = server.connect()
            conns.append(conn)
            conn.sendall(b"list-tube-used\r\n")
            if conn.recv(100) != b"USING default\r\n":
                sys.exit("wrong answer to list-tube-used")
        per_conn = (server.rss() - before) / count
        for conn in conns:
            conn.close()
        return per_conn
    finally:
        server.stop()


def raise_nofile(wanted):
    """As many connections as the limit on descriptors allows; the servers inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = max(soft, wanted + 100) if hard == resource.RLIM_INFINITY else min(max(soft, wanted + 100), hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    if limit < wanted + 100:
        print("only %d connections: the limit on open files is %d" % (limit - 100, limit))
    return min(wanted, limit - 100)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--jobs", type=int, default=1_000_000)
    options.add_argument("--body", type=int, default=100)
    options.add_argument("--conns", type=int, default=10_000)
    options.add_argument("servers", nargs="+", metavar="NAME=COMMAND")
    o = options.parse_args()
    conns = raise_nofile(o.conns)
    print("\n### memory: %d jobs of %d bytes, %d idle connections\n" % (o.jobs, o.body, conns))
    print("| server | RSS before, MB | peak, MB | bytes per job | x | after deletes, MB | bytes per connection | x |")
    print("|---|---|---|---|---|---|---|---|")
    first = None
    for server in o.servers:
        name, command = server.split("=", 1)
        before, peak, after = with_jobs(command, o.jobs, o.body)
        per_job, per_conn = (peak - before) / o.jobs, with_conns(command, conns)
        first = first or (per_job, per_conn)
        mb = 1024 * 1024
        print("| %s | %.1f | %.1f | %.0f | %.2f | %.1f | %.0f | %.2f |" % (
            name, before / mb, peak / mb, per_job, per_job / first[0], after / mb, per_conn, per_conn / first[1]),
            flush=True)


main()
