#!/usr/bin/env python3
"""Measures what each process of a sharded server costs: CPU time per command, beside --legacy in the same rounds.

usage: roles.py [--rounds N] [--jobs N] [--owners N] [--frontends N] [--legacy COMMAND] [--sharded COMMAND]

Load: put, reserve, delete of bodies of 100 bytes over connections with a tube of their own each (bsload life).
CPU time is that of the kernel's scheduler, so that short runs can be told apart. Linux only.
"""
import argparse, json, os, shlex, signal, socket, statistics, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BSLOAD = os.environ.get("BSLOAD") or os.path.join(ROOT, "target", "bsload", "release", "bsload")
OURS = os.path.join(ROOT, "target", "release", "beanshard")
HOST = "127.0.0.1"
WAIT_SECS = 20
COMMANDS_PER_JOB = 3


def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]


def cpu_nanos(pid):
    """CPU time of all threads of the process."""
    tasks = "/proc/%d/task" % pid
    return sum(int(open("%s/%s/schedstat" % (tasks, task)).read().split()[0]) for task in os.listdir(tasks))


def children(pid):
    """Processes that this one has started, by role: supervisor, frontend, owner."""
    found = {"supervisor": [pid]}
    for name in os.listdir("/proc"):
        try:
            parent = int(open("/proc/%s/stat" % name).read().rsplit(")", 1)[1].split()[1]) if name.isdigit() else 0
            title = open("/proc/%s/cmdline" % name).read() if parent == pid else ""
        except OSError:
            continue
        for role in ("frontend", "owner"):
            if title.startswith("beanshard: " + role):
                found.setdefault(role, []).append(int(name))
    return found


def run(command, load):
    """Microseconds of CPU time per command, by role, and commands per second."""
    port = free_port()
    argv = shlex.split(command) + ["-l", HOST, "-p", str(port)]
    server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        begin = time.monotonic()
        while True:
            try:
                with socket.create_connection((HOST, port), WAIT_SECS) as c:
                    c.sendall(b"list-tube-used\r\n")
                    c.recv(100)
                    break
            except OSError:
                if time.monotonic() - begin > WAIT_SECS:
                    sys.exit("no answer: %s" % command)
                time.sleep(0.005)
        roles = children(server.pid)
        before = {role: sum(map(cpu_nanos, pids)) for role, pids in roles.items()}
        told = subprocess.run([BSLOAD, "life", "%s:%d" % (HOST, port)] + load, capture_output=True, text=True)
        told = json.loads(told.stdout)
        if told["errors"]:
            sys.exit("%d errors: %s" % (told["errors"], command))
        commands = told["jobs"] * COMMANDS_PER_JOB
        cost = {role: (sum(map(cpu_nanos, pids)) - before[role]) / commands / 1000 for role, pids in roles.items()}
        return cost, commands / told["seconds"]
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--jobs", type=int, default=30_000)
    options.add_argument("--owners", type=int, default=1)
    options.add_argument("--frontends", type=int, default=1)
    options.add_argument("--legacy", default=OURS + " --legacy")
    options.add_argument("--sharded", default=OURS + " --sharded")
    args = options.parse_args()
    sharded = "%s --owners %d --frontends %d" % (args.sharded, args.owners, args.frontends)
    print("owners %d, frontends %d; CPU per command in us, median of %d rounds (ratio to --legacy)"
          % (args.owners, args.frontends, args.rounds))
    for conns, depth in ((50, 1), (200, 1), (50, 64)):
        load = ["--conns", str(conns), "--depth", str(depth), "--body", "100", "--jobs", str(args.jobs),
                "--seconds", "600", "--warmup", "0"]
        rows, ratios, rates = {}, {}, []
        for _ in range(args.rounds):
            plain, plain_rate = run(args.legacy, load)
            plain = plain["supervisor"]
            cost, rate = run(sharded, load)
            cost["frontend + owner"] = cost["frontend"] + cost["owner"]
            rates.append(rate / plain_rate)
            rows.setdefault("legacy", []).append(plain)
            for role, micros in cost.items():
                rows.setdefault(role, []).append(micros)
                ratios.setdefault(role, []).append(micros / plain)
        shown = ", ".join("%s %.2f%s" % (role, statistics.median(all), " (%.2f)" % statistics.median(ratios[role])
                                         if role in ratios else "") for role, all in rows.items())
        print("conns %3d depth %2d: %s; commands/s %.2f of legacy" % (conns, depth, shown, statistics.median(rates)))


main()
