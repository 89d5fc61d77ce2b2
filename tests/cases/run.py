#!/usr/bin/env python3
"""Runs the cases against a fresh server and compares the outcome with exceptions.txt.

usage: run.py [PREFIX ...]        e.g. run.py 20 33; all cases without one

BEANSTALKD_BIN is the command that starts the server, as in common.py (default: target/release/beanshard
--legacy). The server runs on a free port of 127.0.0.1. Cases that need a server of their own start the
same command. The run fails on every case that fails and is not excepted, and on every exception that
no longer holds. Python 3 standard library only.
"""
import os, shlex, shutil, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HOST = "127.0.0.1"
LIMIT_S = 90
os.environ.setdefault("BEANSTALKD_BIN", os.path.join(ROOT, "target", "release", "beanshard") + " --legacy")
sys.path.insert(0, HERE)
from common import Fail, Server, Skip


def exceptions():
    found = {}
    with open(os.path.join(HERE, "exceptions.txt")) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                name, kind, reason = (part.strip() for part in line.split("|"))
                if kind != "differs":
                    raise SystemExit("exceptions.txt: unknown kind in: %s" % line)
                found[name] = reason
    return found


def takes_binlog():
    """Whether the server starts with -b."""
    directory = tempfile.mkdtemp(prefix="bcase-")
    try:
        Server(HOST, "-b", directory).kill()
        return True
    except Fail:
        return False
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_case(name, port):
    """(PASS, FAIL or SKIP; why)."""
    argv = [sys.executable, os.path.join(HERE, name + ".py"), HOST, str(port)]
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "FAIL", "ran past %d s" % LIMIT_S
    lines = done.stdout.decode("utf-8", "replace").strip().split("\n")
    outcome, _, why = lines[-1].partition(" ")
    if {"PASS": 0, "FAIL": 1, "SKIP": 77}.get(outcome) != done.returncode:
        return "FAIL", "status %d: %s" % (done.returncode, done.stderr.decode("utf-8", "replace")[-200:])
    return outcome, why.partition(": ")[2]


def judge(outcome, why, exception):
    """(word to print, what to print behind it, whether it is as it should be)."""
    if outcome == "SKIP":
        return "skip", why, True
    if exception and outcome == "FAIL":
        return "differs", exception, True
    if exception:
        return "PASSED", "though exceptions.txt has: " + exception, False
    return ("pass", "", True) if outcome == "PASS" else ("FAIL", why, False)


def all_cases(prefixes):
    names = sorted(f[:-3] for f in os.listdir(HERE) if f[:2].isdigit() and f.endswith(".py"))
    for name in exceptions():
        if name not in names:
            raise SystemExit("exceptions.txt names %s, and there is no such case" % name)
    return [n for n in names if not prefixes or any(n.startswith(p) for p in prefixes)]


def main():
    names, excepted = all_cases(sys.argv[1:]), exceptions()
    binary = shlex.split(os.environ["BEANSTALKD_BIN"])[0]
    if not (shutil.which(binary) or os.path.exists(binary)):
        raise SystemExit("%s: not there; run make build first" % binary)
    os.environ["CASES_BINLOG"] = "1" if takes_binlog() else "0"
    server, count, wrong = Server(HOST), {}, []
    try:
        for name in names:
            begin = time.time()
            word, why, right = judge(*run_case(name, server.port), excepted.get(name))
            if not server.alive():
                word, why, right = "FAIL", "the server ended: " + server.tail(), False
                server = Server(HOST)
            count[word] = count.get(word, 0) + 1
            if not right:
                wrong.append(name)
            print("%5.1f s  %-7s %s%s" % (time.time() - begin, word, name, ": " + why if why else ""), flush=True)
    finally:
        server.kill()
    print(", ".join("%d %s" % (n, word) for word, n in sorted(count.items())))
    if wrong:
        print("not as expected: %s" % " ".join(wrong))
    return 1 if wrong else 0


try:
    sys.exit(main())
except (Fail, Skip) as e:
    sys.exit("the server does not start: %s" % e)
