#!/usr/bin/env python3
"""Measures the C server and ours side by side and prints tables with the ratios.

usage: compare.py [--rounds N] [--seconds S] COMMAND

COMMAND starts our server, without the address (target/release/beanshard --legacy). The C server is left
out if `beanstalkd` is not installed. Raw results go to target/bench/results.jsonl, what is printed also
to target/bench/report.md. The load generator has to be built: make bench does both.
"""
import argparse, os, platform, shutil, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(ROOT, "target", "bench")
BENCH = os.path.join(ROOT, "tools", "bsload", "bench.py")
MEMORY = os.path.join(ROOT, "tools", "memory.py")
START = os.path.join(ROOT, "tools", "start.py")
os.environ.setdefault("BSLOAD", os.path.join(ROOT, "target", "bsload", "release", "bsload"))


class Report:
    def __init__(self):
        os.makedirs(OUT, exist_ok=True)
        self.file = open(os.path.join(OUT, "report.md"), "w")

    def line(self, text):
        print(text, flush=True)
        self.file.write(text + "\n")
        self.file.flush()

    def run(self, argv):
        """Runs the program and copies its output."""
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
            for line in child.stdout:
                self.line(line.rstrip("\n"))
        if child.returncode != 0:
            sys.exit("%s ended with %d" % (argv[1], child.returncode))


def servers(command, listen):
    found = ["ours=%s %s" % (command, listen)]
    if shutil.which("beanstalkd"):
        found.insert(0, "C=beanstalkd %s" % listen)
    return found


def pins():
    """One CPU for the servers, another for the load, if there are two."""
    cpus = sorted(os.sched_getaffinity(0)) if shutil.which("taskset") else []
    return "%d,%d" % (cpus[0], cpus[1]) if len(cpus) > 1 else "-,-"


def cpu_name():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    return "%d x %s" % (len(os.sched_getaffinity(0)), names[0] if names else platform.machine())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--seconds", type=float, default=1)
    options.add_argument("command", metavar="COMMAND")
    o = options.parse_args()
    report, results = Report(), os.path.join(OUT, "results.jsonl")
    if os.path.exists(results):
        os.remove(results)
    tcp, unix = "-l {host} -p {port}", "-l unix:{sock}"
    seconds = ["--seconds", str(o.seconds)]
    base = [sys.executable, BENCH, "--rounds", str(o.rounds), "--out", results, "--pin", pins()]

    report.line("# %s" % time.strftime("%Y-%m-%d %H:%M"))
    report.line("")
    report.line("%s, Linux %s. Ratios (x) are ours to C in the same round." % (cpu_name(), platform.release()))
    if not shutil.which("beanstalkd"):
        report.line("beanstalkd is not installed: no ratios.")
    report.run(base + servers(o.command, tcp)
               + ["--", "life", *seconds, "--", "life", *seconds, "--depth", "16"]
               + ["--", "many-tubes", "--extra-tubes", "10000", *seconds])
    report.line("\nOver a Unix socket:")
    report.run(base + servers(o.command, unix) + ["--", "life", *seconds])
    report.line("\nWith a binlog, synced before every answer (-f0):")
    report.run(base + servers(o.command, tcp + " -b {dir} -f0")
               + ["--", "life", *seconds, "--", "life", *seconds, "--depth", "16"])
    report.line("\nWith a binlog, synced every 50 ms:")
    report.run(base + servers(o.command, tcp + " -b {dir}") + ["--", "life", *seconds])
    report.line("\nOurs without and with a binlog. Ratios (x) are to the first:")
    ways = [("none", ""), ("-F", " -b {dir} -F"), ("-f50", " -b {dir}"), ("-f0", " -b {dir} -f0")]
    report.run(base + ["%s=%s %s%s" % (name, o.command, tcp, flags) for name, flags in ways]
               + ["--", "life", *seconds])
    report.run([sys.executable, MEMORY] + servers(o.command, tcp))
    report.run([sys.executable, START] + servers(o.command, tcp + " -b {dir} -F"))


main()
