#!/usr/bin/env python3
"""Drives a live server with client libraries that others wrote: greenstalk (Python), jackd (Node).

usage: run.py [greenstalk] [jackd]         both without a word

BEANSTALKD_BIN is the command that starts the server (default: target/release/beanshard --legacy). The
clients are installed in the pinned versions under target/interop, once. Each step prints a line; the
first that fails ends its client's run, and the status is then 1.
"""
import os, shlex, shutil, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "target", "interop")
HOST = "127.0.0.1"
LIMIT_S = 120
os.environ.setdefault("BEANSTALKD_BIN", os.path.join(ROOT, "target", "release", "beanshard") + " --legacy")
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cases"))
from common import Fail, Server, Skip


def same(a, b):
    try:
        with open(a, "rb") as f, open(b, "rb") as g:
            return f.read() == g.read()
    except OSError:
        return False


def prepare(listed, made, commands):
    """Runs the commands unless `made` is there and was made for the same list of what to install."""
    os.makedirs(OUT, exist_ok=True)
    wanted, done = os.path.join(HERE, listed), os.path.join(OUT, listed)
    if os.path.exists(made) and same(wanted, done):
        return
    print("install %s under %s" % (listed, os.path.relpath(OUT, ROOT)), flush=True)
    for command in commands:
        subprocess.run(command, cwd=OUT, check=True)
    shutil.copy(wanted, done)


def greenstalk():
    venv = os.path.join(OUT, "venv")
    python = os.path.join(venv, "bin", "python")
    prepare("requirements.txt", python, [
        [sys.executable, "-m", "venv", "--clear", venv],
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--requirement", os.path.join(HERE, "requirements.txt")],
    ])
    drive = os.path.join(HERE, "drive_greenstalk.py")
    server = Server(HOST)
    try:
        right = drive_with([python, drive, "tcp", HOST, str(server.port), str(server.p.pid)])
    finally:
        server.kill()
    directory = tempfile.mkdtemp(prefix="bintr-")
    path = os.path.join(directory, "s")
    server = Server(HOST, "-l", "unix:" + path, listen=False)
    try:
        server.wait_up(path)
        return drive_with([python, drive, "unix", path, "0", str(server.p.pid)]) and right
    finally:
        server.kill()
        shutil.rmtree(directory, ignore_errors=True)


def jackd():
    modules = os.path.join(OUT, "node_modules")
    prepare("package-lock.json", os.path.join(modules, "jackd"), [
        ["cp", os.path.join(HERE, "package.json"), os.path.join(HERE, "package-lock.json"), OUT],
        ["npm", "ci", "--silent", "--no-audit", "--no-fund"],
    ])
    os.environ["NODE_PATH"] = modules
    server = Server(HOST)
    try:
        drive = os.path.join(HERE, "drive_jackd.js")
        return drive_with(["node", drive, HOST, str(server.port), str(server.p.pid)])
    finally:
        server.kill()


def drive_with(argv):
    try:
        return subprocess.run(argv, timeout=LIMIT_S).returncode == 0
    except subprocess.TimeoutExpired:
        print("FAIL: ran past %d s" % LIMIT_S)
        return False


def main():
    clients = {"greenstalk": greenstalk, "jackd": jackd}
    names = sys.argv[1:] or list(clients)
    if any(name not in clients for name in names):
        raise SystemExit(__doc__)
    binary = shlex.split(os.environ["BEANSTALKD_BIN"])[0]
    if not (shutil.which(binary) or os.path.exists(binary)):
        raise SystemExit("%s: not there; run make build first" % binary)
    failed = [name for name in names if not clients[name]()]
    print("failed: %s" % " ".join(failed) if failed else "all right: %s" % " ".join(names))
    return 1 if failed else 0


try:
    sys.exit(main())
except (Fail, Skip) as e:
    sys.exit("the server does not start: %s" % e)
