"""Servers that are measured, and runs of the load generator against them, each done once."""
import json, os, resource, shutil, signal, statistics, subprocess, sys, tempfile, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("BSLOAD", os.path.join(ROOT, "target", "bsload", "release", "bsload"))
sys.path.insert(0, os.path.join(ROOT, "tools", "bsload"))
import bench as bsload  # noqa: E402, the path has to be set first

TCP, UNIX = " -l {host} -p {port}", " -l unix:{sock}"
UNPINNED = ("-", "-")
LIMIT_SECS = 120
# CPUs that other processes may take before a row says that the machine was busy.
OTHERS_MAX = 0.3


class Server(bsload.Server):
    """A server with what can be asked of it and about it."""

    def __init__(self, command, cpu="-", dir=None):
        super().__init__(command, cpu, dir)
        raise_nofile()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def first_answer_secs(self):
        """From the start of the process to the answer to a command."""
        with self.connect() as c:
            ask(c, b"list-tube-used\r\n", b"USING default\r\n")
        return time.monotonic() - self.began

    def kill(self):
        """As a crash would end it. Not for a server with children."""
        self.p.send_signal(signal.SIGKILL)
        self.p.wait()

    def roles(self):
        """Process numbers by role; a server of one process is a supervisor."""
        found = {"supervisor": [self.p.pid]}
        for pid in children(self.p.pid):
            with open("/proc/%d/cmdline" % pid) as f:
                title = f.read()
            for role in ("frontend", "owner"):
                if title.startswith("beanshard: " + role):
                    found.setdefault(role, []).append(pid)
        return found

    def rss(self):
        """Bytes, with the descendants'."""
        page = os.sysconf("SC_PAGE_SIZE")
        pids = [self.p.pid] + children(self.p.pid)
        return page * sum(int(open("/proc/%d/statm" % pid).read().split()[1]) for pid in pids)

    def load(self, argv, cpu="-", label=""):
        """What bsload says of a run against this server."""
        argv = [bsload.BSLOAD, argv[0], self.target, *argv[1:], "--pid", str(self.p.pid), "--tree", "--label", label]
        done = subprocess.run(bsload.pinned(cpu, argv), capture_output=True, text=True, timeout=LIMIT_SECS)
        if not done.stdout:
            sys.exit("%s: %s" % (" ".join(argv), done.stderr))
        return json.loads(done.stdout)


def ask(conn, command, answer):
    conn.sendall(command)
    got = conn.recv(100)
    if got != answer:
        sys.exit("wanted %r, got %r" % (answer, got))


def children(pid):
    """All descendants."""
    found = []
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/children" % (pid, task)) as f:
            for child in map(int, f.read().split()):
                found += [child] + children(child)
    return found


def usage(pids):
    """Nanoseconds of CPU time and context switches of all threads of the processes."""
    nanos = switches = 0
    for pid in pids:
        for task in os.listdir("/proc/%d/task" % pid):
            where = "/proc/%d/task/%s/" % (pid, task)
            nanos += int(open(where + "schedstat").read().split()[0])
            switches += sum(int(line.split()[1]) for line in open(where + "status") if "ctxt_switches" in line)
    return nanos, switches


def pin(pids, cpu):
    """All threads of the processes; those started later inherit it."""
    for pid in pids if cpu != "-" else []:
        for task in os.listdir("/proc/%d/task" % pid):
            os.sched_setaffinity(int(task), {int(cpu)})


def raise_nofile():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def pins():
    """One CPU for the servers, another for the load, if there are two."""
    cpus = sorted(os.sched_getaffinity(0)) if shutil.which("taskset") else []
    return (str(cpus[0]), str(cpus[1])) if len(cpus) > 1 else UNPINNED


class Runs:
    """Runs in turns. A contender is (name, command of the server, arguments of bsload)."""

    def __init__(self, rounds, seconds, ours, place, details):
        self.rounds, self.seconds, self.ours, self.details = rounds, seconds, ours, details
        self.legacy, self.sharded = ours + " --legacy", ours + " --sharded --owners %d --frontends %d"
        self.c = "beanstalkd" if shutil.which("beanstalkd") else None
        self.pins = pins()
        # Where owners run, see docs/benchmarks.md. All else of a server is on the first CPU.
        self.owner_pin = self.pins[1 if place == "apart" else 0]
        self.done = {}
        # Beside the code, where the disk is that a log would be on; /tmp may be memory.
        self.scratch = tempfile.mkdtemp(prefix="bench-", dir=os.path.join(ROOT, "target"))
        tempfile.tempdir = self.scratch

    def close(self):
        shutil.rmtree(self.scratch, ignore_errors=True)

    def timed(self, *argv):
        """A load that lasts as long as was asked for."""
        return [*argv, "--seconds", str(self.seconds)]

    def beside(self, argv, flags=TCP, names=("C", "ours")):
        """The C server, where there is one, and ours, with the same load."""
        commands = {"C": self.c, "ours": self.legacy}
        return [(name, commands[name] + flags, argv) for name in names if commands[name]]

    def compare(self, title, contenders, run=None):
        """A `Runs.Result` for each round and name. What was compared once is not run again."""
        key = repr((title, contenders))
        if key not in self.done:
            rows = {name: [] for name, _, _ in contenders}
            for at in range(self.rounds):
                for name, command, argv in contenders if at % 2 == 0 else contenders[::-1]:
                    rows[name].append((run or self.one)(name, command, argv))
            self.done[key] = Compared(rows)
            self.details.section(title, contenders, rows)
        return self.done[key]

    def one(self, name, command, argv):
        with Server(command, self.pins[0]) as server:
            time.sleep(0.05)
            told = server.load(argv, self.pins[1], name)
            told["args"] = " ".join(argv)
            return told

    def by_role(self, name, command, argv):
        """The same, with microseconds of CPU time and switches for each operation, by role."""
        with Server(command) as server:
            server.first_answer_secs()
            roles = server.roles()
            for role, pids in roles.items():
                pin(pids, self.owner_pin if role == "owner" else self.pins[0])
            before = {role: usage(pids) for role, pids in roles.items()}
            told = server.load(argv, self.pins[1], name)
            ops = max(1, told["ops"])
            told["role"], told["switches"] = {}, 0
            for role, pids in roles.items():
                nanos, switches = usage(pids)
                told["role"][role] = (nanos - before[role][0]) / ops / 1000
                told["switches"] += (switches - before[role][1]) / ops
            told["role"]["all"] = sum(told["role"].values())
            told["args"] = " ".join(argv)
            return told


class Compared:
    """What rounds came to: medians, and medians of the ratios within each round."""

    def __init__(self, rows):
        self.rows = rows

    def has(self, name):
        return name in self.rows

    def value(self, name, path):
        found = [v for v in (bsload.pick(told, path) for told in self.rows[name]) if v is not None]
        return statistics.median(found) if found else None

    def ratio(self, name, other, path, other_path=None):
        pairs = [(bsload.pick(a, path), bsload.pick(b, other_path or path))
                 for a, b in zip(self.rows[name], self.rows[other])]
        found = [a / b for a, b in pairs if a is not None and b]
        return statistics.median(found) if found else None

    def trouble(self):
        """Why the figures are not to be believed, if there is a reason."""
        told = [one for all_told in self.rows.values() for one in all_told]
        if any(one.get("errors", 0) for one in told):
            return "errors"
        others = statistics.median(one["noise"]["other_s"] / one["seconds"] for one in told)
        return "busy" if others > OTHERS_MAX else ""
