"""Row 9: memory for a job, an idle connection, an empty tube. Once each: it hardly varies."""
import sys, time

from .growth import tube_runs
from .servers import TCP, Server, ask
from .table import Row, short

JOBS, BODY, CONNS, BATCH = 1_000_000, 64, 10_000, 1000
MB = 1024 * 1024


def lines(stream, count, prefix):
    found = []
    for _ in range(count):
        line = stream.readline()
        if not line.startswith(prefix):
            sys.exit("wanted %r, got %r" % (prefix, line))
        found.append(line)
    return found


def with_jobs(command):
    """RSS before, with the jobs, and after all are deleted."""
    with Server(command) as server, server.connect() as client:
        stream = client.makefile("rb")
        before = server.rss()
        put = b"put 0 0 60 %d\r\n%s\r\n" % (BODY, b"x" * BODY)
        ids = []
        for _ in range(0, JOBS, BATCH):
            client.sendall(put * BATCH)
            ids += [line.split()[1] for line in lines(stream, BATCH, b"INSERTED ")]
        peak = server.rss()
        for at in range(0, JOBS, BATCH):
            client.sendall(b"".join(b"delete %s\r\n" % i for i in ids[at:at + BATCH]))
            lines(stream, BATCH, b"DELETED")
        time.sleep(1)
        return before, peak, server.rss()


def with_conns(command):
    """Bytes of RSS for each idle connection, which all sent a command once."""
    with Server(command) as server:
        before, conns = server.rss(), []
        for _ in range(CONNS):
            conns.append(server.connect())
            ask(conns[-1], b"list-tube-used\r\n", b"USING default\r\n")
        per_conn = (server.rss() - before) / CONNS
        for conn in conns:
            conn.close()
        return per_conn


def memory(runs):
    commands = [runs.legacy + TCP] + ([runs.c + TCP] if runs.c else [])
    jobs = [with_jobs(command) for command in commands]
    per_job = [(peak - before) / JOBS for before, peak, _ in jobs]
    per_conn = [with_conns(command) for command in commands]
    per_tube = tube_runs(runs)[0].value("100000 watched", "extra.rss_bytes_each")

    def row(load, values, target, unit="B"):
        other = "C: %s %s" % (short(values[1]), unit) if len(values) > 1 else None
        return Row(9, load, "%s %s" % (short(values[0]), unit), other, values[0], "<=", target, unit=unit)

    return [
        row("RSS per job of 64 bytes, of 1M", per_job, 150),
        row("RSS of the process after they are deleted", [after / MB for _, _, after in jobs], None, "MB"),
        row("RSS per idle connection, of 10,000", per_conn, 600),
        row("RSS per empty tube, of 100,000 watched", [per_tube], 400),
    ]


GROUPS = [((9,), memory)]
