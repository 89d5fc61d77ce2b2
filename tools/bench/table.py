"""What is printed: the table, and the details behind it."""
import os, platform, time

from .servers import bsload

HEAD = ["| # | load | ours | beside | figure | to reach | |", "|---|---|---|---|---|---|---|"]


class Row:
    """A line of the table. `op` is `<=` or `>=`, between the figure and what is to be reached."""

    def __init__(self, number, load, ours, beside, figure, op="", target=None, unit="x", note=""):
        self.number, self.load, self.ours, self.beside, self.note = number, load, ours, beside, note
        self.figure, self.op, self.target, self.unit = figure, op, target, unit

    def verdict(self):
        if self.target is None or self.figure is None:
            return ""
        is_reached = self.figure <= self.target if self.op == "<=" else self.figure >= self.target
        return "ok" if is_reached else "short"

    def last(self):
        """The verdict, unless there is something else to be said; that the machine was busy goes with it."""
        if self.note != "busy":
            return self.note or self.verdict()
        return ", ".join(filter(None, [self.verdict(), "busy"]))

    def line(self):
        figure = "" if self.figure is None else "%s %s" % (short(self.figure), self.unit)
        target = "" if self.target is None else "%s %s %s" % (self.op, plain(self.target), self.unit)
        cells = [self.number, self.load, self.ours, self.beside or "", figure, target, self.last()]
        return "| " + " | ".join(str(cell).strip() for cell in cells) + " |"


def short(value):
    """Three digits that matter."""
    if value is None:
        return ""
    if value >= 100:
        return "{:,.0f}".format(value).replace(",", " ")
    return ("%.1f" if value >= 10 else "%.2f") % value


def plain(value):
    return "%g" % value


def machine():
    with open("/proc/cpuinfo") as f:
        names = [line.split(":", 1)[1].strip() for line in f if line.startswith("model name")]
    cpus = "%d x %s" % (len(os.sched_getaffinity(0)), names[0] if names else platform.machine())
    return "%s, Linux %s, %s; load average before: %.1f" % (
        cpus, platform.release(), time.strftime("%Y-%m-%d %H:%M"), os.getloadavg()[0])


class Details:
    """Sections of bench.py's tables, which follow the table in the report."""

    def __init__(self):
        self.sections = []

    def section(self, title, contenders, rows):
        names = [name for name, _, _ in contenders]
        text = ["### " + title, ""]
        text += ["- %s: `bsload %s`" % (name, " ".join(argv)) for name, _, argv in contenders if argv]
        if all("ops_per_s" in told for all_told in rows.values() for told in all_told):
            text += ["", bsload.table(rows, names)]
        for name in names:
            roles = [told["role"] for told in rows[name] if "role" in told]
            for told in roles:
                text.append("\n%s, us/op: %s" % (name, ", ".join("%s %.2f" % item for item in told.items())))
        self.sections.append("\n".join(text))


class Report:
    """Prints lines as they come; the file gets them with the details at the end."""

    def __init__(self, path, settings):
        self.path, self.rows = path, []
        self.intro = "%s; %s" % (machine(), settings)
        print(self.intro + "\n\n" + "\n".join(HEAD), flush=True)

    def add(self, rows):
        for row in rows:
            self.rows.append(row)
            print(row.line(), flush=True)

    def write(self, details):
        self.rows.sort(key=lambda row: int(row.number))
        lines = [self.intro, "", *HEAD, *(row.line() for row in self.rows), "", "## Details", "", *details.sections]
        with open(self.path, "w") as f:
            f.write("\n".join(lines) + "\n")
        print("\nwritten: %s" % self.path)
