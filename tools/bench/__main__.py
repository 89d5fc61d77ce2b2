"""Measures the server against what it is to reach, and prints one table.

usage: python3 -m tools.bench [--rounds N] [--seconds S] [--rows N,N...] [--place apart|together] BINARY

BINARY is our server. Rows that compare with the C server need `beanstalkd` installed; without it they have no
figure. The table and what it was made from go to target/bench/report.md. Nothing here fails for being slow.
More rounds and longer ones (--rounds 7 --seconds 3) make figures steadier; a quiet machine does more.
docs/benchmarks.md says what each row means.
"""
import argparse, os, sys, time

from . import durable, growth, live, memory, sharded
from .servers import ROOT, Runs
from .table import Details, Report

GROUPS = [group for module in (live, growth, memory, durable, sharded) for group in module.GROUPS]


def wanted_rows(text):
    known = {number for numbers, _ in GROUPS for number in numbers}
    wanted = {int(part) for part in text.replace(",", " ").split()} if text else known
    if not wanted <= known:
        sys.exit("no such row: %s" % ", ".join(map(str, sorted(wanted - known))))
    return wanted


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=1)
    options.add_argument("--rows", default="")
    options.add_argument("--place", choices=("apart", "together"), default="together",
                         help="owners on the CPU of the load, or on that of the frontends")
    options.add_argument("binary", metavar="BINARY")
    o = options.parse_args()
    wanted = wanted_rows(o.rows)
    out = os.path.join(ROOT, "target", "bench")
    os.makedirs(out, exist_ok=True)
    details = Details()
    runs = Runs(o.rounds, o.seconds, os.path.abspath(o.binary), o.place, details)
    report = Report(os.path.join(out, "report.md"), "medians of %d rounds of %g s; owners %s"
                    % (o.rounds, o.seconds, o.place))
    begin = time.monotonic()
    try:
        for numbers, measure in GROUPS:
            if wanted & set(numbers):
                report.add([row for row in measure(runs) if row.number in wanted])
    finally:
        runs.close()
    report.write(details)
    print("%.0f s in all" % (time.monotonic() - begin))


main()
