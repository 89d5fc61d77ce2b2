"""Rows about serving commands: speed, CPU time, system calls, beside the C server."""
import os, re, shutil, signal, subprocess, time

from .servers import TCP, UNIX, Server
from .table import Row, short

CPU, OPS, P50, P99 = "server.cpu_us_per_op", "ops_per_s", "lat_us.all.p50", "lat_us.all.p99"
UNITS = {CPU: " us", OPS: "/s", P50: " us", P99: " us"}
STRACED_JOBS = 10_000


def beside_c(number, load, found, path, op, target):
    """Ours against C."""
    ours = short(found.value("ours", path)) + UNITS[path]
    if not found.has("C"):
        return Row(number, load, ours, None, None, op, target, note="no beanstalkd")
    return Row(number, load, ours, "C: " + short(found.value("C", path)) + UNITS[path],
               found.ratio("ours", "C", path), op, target, note=found.trouble())


def against_own(number, load, found, name, base, path, op, target):
    """One of ours against another of ours."""
    return Row(number, load, short(found.value(name, path)) + UNITS[path],
               "%s: %s%s" % (base, short(found.value(base, path)), UNITS[path]),
               found.ratio(name, base, path), op, target, note=found.trouble())


def request_response(runs):
    argv = runs.timed("life")
    log = ("ours -b", runs.legacy + TCP + " -b {dir}", argv)
    found = runs.compare("request/response, without and with a log (rows 1, 10)", runs.beside(argv) + [log])
    return [
        beside_c(1, "request/response, TCP: server CPU per op", found, CPU, "<=", 0.70),
        against_own(10, "`-b`, default sync: CPU per op", found, "ours -b", "ours", CPU, "<=", 1.15),
        against_own(10, "the same: p99", found, "ours -b", "ours", P99, "<=", 1.3),
    ]


def unix_socket(runs):
    found = runs.compare("request/response, Unix socket (row 2)", runs.beside(runs.timed("life"), UNIX))
    return [beside_c(2, "the same over a Unix socket", found, CPU, "<=", 0.55)]


def one_connection(runs):
    found = runs.compare("one connection (row 3)", runs.beside(runs.timed("life", "--conns", "1")))
    return [
        beside_c(3, "1 connection, request/response: CPU per op", found, CPU, "<=", 1.0),
        beside_c(3, "the same: p50", found, P50, "<=", 1.0),
    ]


def in_flight(runs):
    rows = []
    for number, depth, target in ((4, 16, 12), (5, 64, 30)):
        found = runs.compare("%d in flight (row %d)" % (depth, number), runs.beside(runs.timed("life", "--depth", str(depth))))
        rows.append(beside_c(number, "%d in flight: ops/s" % depth, found, OPS, ">=", target))
    return rows


def big_bodies(runs):
    argv = runs.timed("life", "--conns", "10", "--body", "1048576")
    found = runs.compare("1 MB bodies (row 13)", runs.beside(argv, TCP + " -z 2000000"))
    return [
        beside_c(13, "1 MB bodies, 10 connections: ops/s", found, OPS, ">=", 1.0),
        beside_c(13, "the same: CPU per op", found, CPU, "<=", 1.0),
    ]


def many_watched(runs):
    argv = runs.timed("fanout", "--tubes", "1000", "--workers", "50")
    found = runs.compare("50 workers watching 1,000 tubes each (row 14)", runs.beside(argv))
    return [beside_c(14, "50 workers each watching 1,000 tubes: CPU per op", found, CPU, "<=", 0.5)]


def churn(runs):
    found = runs.compare("connect, one command, close (row 15)", runs.beside(runs.timed("churn")))
    return [beside_c(15, "connect, one command, close: CPU per session", found, CPU, "<=", 0.9)]


def calls_per_op(runs, command, depth):
    """System calls of a server for each operation, counted by strace."""
    listing = os.path.join(runs.scratch, "strace")
    with Server(command + TCP) as server:
        tracer = subprocess.Popen(["strace", "-c", "-f", "-o", listing, "-p", str(server.p.pid)],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        tracer.stderr.readline()  # it says that it is attached
        told = server.load(["life", "--jobs", str(STRACED_JOBS), "--depth", str(depth)])
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=10)
        time.sleep(0.1)
    with open(listing) as f:
        total = re.search(r"^100\.00\s+\S+\s+\S+\s+(\d+)", f.read(), re.MULTILINE)
    return int(total.group(1)) / told["ops"]


def system_calls(runs):
    rows = []
    for depth, target in ((1, 2.3), (16, 0.3)):
        load = "system calls per command, %d in flight" % depth
        if not shutil.which("strace"):
            rows.append(Row(16, load, "", None, None, "<=", target, unit="calls", note="no strace"))
            continue
        ours = calls_per_op(runs, runs.legacy, depth)
        other = "C: " + short(calls_per_op(runs, runs.c, depth)) if runs.c else None
        rows.append(Row(16, load, short(ours), other, ours, "<=", target, unit="calls"))
    return rows


GROUPS = [((1, 10), request_response), ((2,), unix_socket), ((3,), one_connection), ((4, 5), in_flight),
          ((13,), big_bodies), ((14,), many_watched), ((15,), churn), ((16,), system_calls)]
