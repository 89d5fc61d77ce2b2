"""Rows about `--sharded`: CPU time by role beside our own `--legacy` in the same rounds."""
from .live import CPU, OPS, against_own
from .servers import TCP
from .table import Row, short

# Connections, commands under way on each, jobs: fixed counts, so that setting up weighs the same for both.
LOADS = [(1, 1, 5_000), (10, 1, 30_000), (50, 1, 30_000), (500, 1, 30_000), (50, 16, 200_000)]


def role_runs(runs, conns, depth, jobs):
    jobs = int(jobs * max(1, runs.seconds))
    argv = ["life", "--conns", str(conns), "--depth", str(depth), "--jobs", str(jobs)]
    contenders = [("legacy", runs.legacy + TCP, argv), ("1+1", runs.sharded % (1, 1) + TCP, argv)]
    return runs.compare("by role: %d connections, %d in flight" % (conns, depth), contenders, runs.by_role)


def role_row(number, load, found, role, op, target):
    path = "role." + role
    return Row(number, load, short(found.value("1+1", path)) + " us", "legacy: %s us" % short(found.value("legacy", "role.all")),
               found.ratio("1+1", "legacy", path, "role.all"), op, target, note=found.trouble())


def roles(runs):
    found = {load[:2]: role_runs(runs, *load) for load in LOADS}
    full, deep = found[50, 1], found[50, 16]
    rows = [role_row(19, "request/response, 50 connections: frontend CPU per op", full, "frontend", "<=", 1.2)]
    for conns in (1, 10, 50, 500):
        rows.append(role_row(20, "%d connections: owner CPU per op" % conns, found[conns, 1], "owner", "<=",
                             0.25 if conns == 50 else None))
    rows.append(role_row(21, "16 in flight: frontend and owner CPU per op", deep, "all", "<=", 1.8))
    switches = full.value("1+1", "switches")
    rows.append(Row(25, "context switches per op, all processes, 50 connections", short(switches),
                    "legacy: " + short(full.value("legacy", "switches")), switches, "<=", 0.2, unit=""))
    return rows


def more_processes(runs):
    rows = []
    ways = [(1, 1), (1, 2), (2, 1), (4, 1)]
    for load, argv in (("60,000 commands a second", runs.timed("life", "--rate", "20000", "--conns", "100")),
                       ("full load", runs.timed("life", "--conns", "100"))):
        contenders = [("%d owners, %d frontends" % way, runs.sharded % way + TCP, argv) for way in ways]
        found = runs.compare("more processes, %s (row 22)" % load, contenders, runs.by_role)
        base = contenders[0][0]
        rows += [against_own(22, "%s, %s: CPU per op" % (name, load), found, name, base, CPU, "<=", 1.05)
                 for name, _, _ in contenders[1:]]
    return rows


def latency(runs):
    argv = runs.timed("e2e", "--rate", "5000")
    found = runs.compare("put to RESERVED at 5,000 jobs a second (row 23)",
                         [("legacy", runs.legacy + TCP, argv), ("1+1", runs.sharded % (1, 1) + TCP, argv)], runs.by_role)
    rows = []
    for name in ("p50", "p99"):
        path = "lat_us.e2e." + name
        rows.append(Row(23, "put to RESERVED at 5,000 jobs/s: " + name, short(found.value("1+1", path)) + " us",
                        "legacy: %s us" % short(found.value("legacy", path)), found.ratio("1+1", "legacy", path),
                        "<=", 2, note=found.trouble()))
    return rows


def multi_watch(runs):
    """What a job's put, reserve and delete cost more than with one owner is the reserve's; with one owner a reserve is
    taken as a third of the three."""
    argv = runs.timed("fanout", "--tubes", "100", "--workers", "50")
    contenders = [("%d owners" % owners, runs.sharded % (owners, 1) + TCP, argv) for owners in (1, 2, 4)]
    found = runs.compare("workers that watch tubes of several owners (row 24)", contenders, runs.by_role)
    single = found.value("1 owners", CPU)
    rows = []
    for name in ("2 owners", "4 owners"):
        ratio = 1 + 3 * (found.ratio(name, "1 owners", CPU) - 1)
        rows.append(Row(24, "50 workers watching 100 tubes, %s: CPU per reserve" % name, short(ratio * single) + " us",
                        "1 owner: %s us" % short(single), ratio, "<=", 2.5, note=found.trouble()))
    return rows


def synced(runs):
    argv, log = runs.timed("life", "--conns", "100"), TCP + " -b {dir} -f0"
    contenders = [("legacy", runs.legacy + log, argv), ("2+1", runs.sharded % (2, 1) + log, argv)]
    if runs.c:
        contenders.append(("C", runs.c + log, argv))
    found = runs.compare("-f0 with 2 owners (row 26)", contenders, runs.by_role)
    load = "`-b -f0`, 2 owners, 1 frontend, 100 connections: ops/s"
    rows = [against_own(26, load, found, "2+1", "legacy", OPS, ">=", 1.5)]
    if runs.c:
        rows.append(against_own(26, "the same", found, "2+1", "C", OPS, ">=", 10))
    return rows


GROUPS = [((19, 20, 21, 25), roles), ((22,), more_processes), ((23,), latency), ((24,), multi_watch), ((26,), synced)]
