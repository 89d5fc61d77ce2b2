"""Rows about the log and about starting."""
import os, shutil, statistics, tempfile

from .live import OPS, beside_c
from .servers import TCP, Server
from .table import Row, short

REPLAYED, STARTS = 1_000_000, 9


def synced(runs):
    rows = []
    for depth, target, load in ((1, 10, "`-b -f0`, request/response: ops/s"), (16, 40, "`-b -f0`, 16 in flight: ops/s")):
        found = runs.compare("-f0, %d in flight (row 11)" % depth,
                             runs.beside(runs.timed("life", "--depth", str(depth)), TCP + " -b {dir} -f0"))
        rows.append(beside_c(11, load, found, OPS, ">=", target))
    return rows


def start_millis(command):
    """Median of several starts, to the first answer."""
    times = []
    for _ in range(STARTS):
        with Server(command + TCP) as server:
            times.append(1000 * server.first_answer_secs())
    return statistics.median(times)


def starts(runs):
    legacy, sharded = start_millis(runs.legacy), start_millis(runs.sharded % (2, 2))
    other = "C: %s ms" % short(start_millis(runs.c)) if runs.c else None
    return [
        Row(17, "start to the first answer, `--legacy`", short(legacy) + " ms", other, legacy, "<=", 5, unit="ms"),
        Row(17, "the same, `--sharded`, 2 owners, 2 frontends", short(sharded) + " ms", None, sharded, "<=", 60, unit="ms"),
    ]


def replay_secs(runs, command):
    """Seconds from the start to the first answer with a full log, median of the rounds."""
    command += TCP + " -b {dir} -F"
    dir = tempfile.mkdtemp(dir=runs.scratch)
    try:
        with Server(command, dir=dir) as server:
            server.load(["put", "--jobs", str(REPLAYED), "--body", "100", "--depth", "64", "--seconds", "600", "--keep",
                         "--drain-limit", "0"])
            server.kill()
        times = []
        for _ in range(runs.rounds):
            with Server(command, dir=dir) as server:
                times.append(server.first_answer_secs())
                server.kill()
        return statistics.median(times)
    finally:
        shutil.rmtree(dir, ignore_errors=True)


def replay(runs):
    ours = replay_secs(runs, runs.legacy)
    other = "C: %s s" % short(replay_secs(runs, runs.c)) if runs.c else None
    return [Row(18, "replay of 1M jobs of 100 bytes, to the first answer", short(ours) + " s", other, ours, "<=", 1, unit="s")]


GROUPS = [((11,), synced), ((17,), starts), ((18,), replay)]
