#!/usr/bin/env python3
"""Measures how long servers take to start with a full binlog, from the call to the first answer.

usage: start.py [--jobs N] [--rounds N] NAME=COMMAND ...

{host}, {port} and {dir} in COMMAND are filled in. Each server fills a directory of its own with N jobs of
100 bytes, is killed, and is started on it again and again, in turns with the others.
"""
import argparse, json, os, shlex, shutil, signal, socket, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BSLOAD = os.environ.get("BSLOAD") or os.path.join(ROOT, "target", "bsload", "release", "bsload")
HOST = "127.0.0.1"
WAIT_SECS = 60


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


class Server:
    def __init__(self, command):
        self.command, self.dir = command, tempfile.mkdtemp(prefix="bsstart-")

    def start(self):
        """Returns the seconds until the first answer."""
        self.port = free_port()
        argv = shlex.split(self.command.format(host=HOST, port=self.port, dir=self.dir))
        begin = time.monotonic()
        self.p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while time.monotonic() - begin < WAIT_SECS:
            try:
                with socket.create_connection((HOST, self.port), WAIT_SECS) as c:
                    c.sendall(b"list-tube-used\r\n")
                    if c.recv(100).startswith(b"USING"):
                        return time.monotonic() - begin
            except OSError:
                time.sleep(0.001)
        sys.exit("no answer: %s" % self.command)

    def kill(self):
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()

    def fill(self, jobs):
        self.start()
        argv = [BSLOAD, "put", "%s:%d" % (HOST, self.port), "--jobs", str(jobs), "--body", "100", "--depth", "64",
                "--seconds", "600", "--keep", "--drain-limit", "0"]
        told = json.loads(subprocess.run(argv, check=True, capture_output=True, text=True).stdout)
        if told["errors"]:
            sys.exit("%d errors while filling: %s" % (told["errors"], self.command))
        self.kill()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--jobs", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("servers", metavar="NAME=COMMAND", nargs="+")
    o = options.parse_args()
    servers = {name: Server(command) for name, command in (one.split("=", 1) for one in o.servers)}
    times = {name: [] for name in servers}
    try:
        for server in servers.values():
            server.fill(o.jobs)
        for _ in range(o.rounds):
            for name, server in servers.items():
                times[name].append(server.start())
                server.kill()
    finally:
        for server in servers.values():
            shutil.rmtree(server.dir, ignore_errors=True)
    print("\n### start with %d jobs of 100 bytes in the binlog\n" % o.jobs)
    print("| server | seconds to the first answer | x |\n|---|---|---|")
    first = statistics.median(next(iter(times.values())))
    for name, all_times in times.items():
        median = statistics.median(all_times)
        print("| %s | %.2f | %.2f |" % (name, median, median / first))


main()
