"""Rows about how much there is: tubes, jobs, connections, time limits that end. Against our own with little."""
from .live import CPU, OPS, against_own
from .servers import TCP
from .table import Row, short

EXPIRING, STORM = 3_000, 5_000


def life_beside(runs, kinds):
    """Contenders of ours: one for each way of filling the server first."""
    return [(name, runs.legacy + TCP, runs.timed("life", *argv)) for name, argv in kinds]


def tube_runs(runs):
    kinds = [("1 tube", ["--tubes", "1"])]
    for mode in ("ready", "delayed", "watched"):
        for count in (10_000, 100_000):
            kinds.append(("%d %s" % (count, mode),
                          ["--tubes", "1", "--extra-tubes", str(count), "--extra-mode", mode]))
    return runs.compare("other tubes (rows 6, 9)", life_beside(runs, kinds)), [name for name, _ in kinds[1:]]


def tubes(runs):
    found, names = tube_runs(runs)
    return [against_own(6, "%s other tubes: ops/s" % name, found, name, "1 tube", OPS, ">=", 0.95) for name in names]


def jobs(runs):
    kinds = [("none", ["--tubes", "1"])] + [
        ("%d M" % millions, ["--tubes", "1", "--prefill", str(millions * 1_000_000), "--drain-limit", "0"])
        for millions in (1, 5)]
    found = runs.compare("jobs waiting (row 7)", life_beside(runs, kinds))
    return [against_own(7, "%s jobs waiting in the tube: ops/s" % name, found, name, "none", OPS, ">=", 0.9)
            for name, _ in kinds[1:]]


def connections(runs):
    kinds = [("no others", []), ("10,000 idle", ["--idle", "10000"])]
    found = runs.compare("idle connections (row 8)", life_beside(runs, kinds))
    rows = [against_own(8, "10,000 connections waiting in reserve: CPU per op", found, "10,000 idle", "no others",
                        CPU, "<=", 1.1)]
    workers = [("%d workers" % count, runs.legacy + TCP,
                runs.timed("e2e", "--workers", str(count), "--backlog", "50")) for count in (50, 5000)]
    found = runs.compare("workers on one tube (row 8)", workers)
    return rows + [against_own(8, "5,000 workers on one tube: CPU per op", found, "5000 workers", "50 workers",
                               CPU, "<=", 1.1)]


def time_limits(runs):
    spread = ["ttr", "--jobs", str(EXPIRING), "--ttr", "2", "--rate", "2000"]
    storm = ["ttr", "--jobs", str(STORM), "--ttr", "1"]
    found = runs.compare("time limits that end (row 12)",
                         [("spread", runs.legacy + TCP, spread), ("storm", runs.legacy + TCP, storm)])
    rows = []
    for name, count, load in (("spread", EXPIRING, "2,000 a second expire"), ("storm", STORM, "5,000 expire at once")):
        returned = found.value(name, "lat_us.expire.n") or 0
        late = found.value(name, "lat_us.expire.p99") or 0
        share, is_spread = 100 * returned / count, name == "spread"
        rows.append(Row(12, load + ": share returned", "%d of %d" % (returned, count), None, share, ">=", 100, unit="%",
                        note=found.trouble()))
        rows.append(Row(12, "the same: lateness p99", short(late / 1000) + " ms", None, late / 1000, "<=",
                        2 if is_spread else None, unit="ms", note=found.trouble()))
    return rows


GROUPS = [((6,), tubes), ((7,), jobs), ((8,), connections), ((12,), time_limits)]
