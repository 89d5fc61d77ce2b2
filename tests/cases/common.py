"""Shared helper for the public-bug cases.  Python 3 standard library only.

Each case is run as   python3 NN_name.py HOST PORT
and prints one line:  PASS name | FAIL name: why | SKIP name: why
Exit status: 0 pass, 1 fail, 77 skip.

A case that has to own the server (restart it, fill its disk, starve it of
descriptors, ...) starts one itself on a free port of HOST:
  BEANSTALKD_BIN   command to start (default "beanstalkd"); may hold words,
                   e.g. "target/release/server --legacy"
  CASE_ARGS        extra words put after it, e.g. "--owners 2"
  CASES_BINLOG     "0" while the server has no binlog: parts that need it are left out
Such a case ignores PORT.  It only ends the processes it started.
"""
import os, sys, time, socket, struct, signal, shlex, shutil, random
import select, subprocess, tempfile, resource


class Fail(Exception):
    pass


class Skip(Exception):
    pass


class Closed(Fail):
    pass


def uniq(tag="t"):
    return "%s-%d-%d" % (tag, os.getpid(), random.randrange(10 ** 6))


def eq(got, want, what):
    if got != want:
        raise Fail("%s: got %r, want %r" % (what, got, want))


def ok(cond, what):
    if not cond:
        raise Fail(what)


class Conn:
    def __init__(self, host, port, timeout=5.0, rcvbuf=None):
        self.timeout = timeout
        self.buf = b""
        if str(host).startswith("/"):
            self.s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.s.settimeout(timeout)
            self.s.connect(host)
        else:
            self.s = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            if rcvbuf:
                self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            self.s.settimeout(timeout)
            self.s.connect((host, int(port)))
            self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, b):
        if isinstance(b, str):
            b = b.encode("latin-1")
        self.s.settimeout(self.timeout)
        self.s.sendall(b)

    def _fill(self, timeout):
        self.s.settimeout(max(timeout, 0.001))
        try:
            d = self.s.recv(65536)
        except (socket.timeout, BlockingIOError):
            return False
        except ConnectionError as e:
            raise Closed("connection broken: %s" % e)
        if not d:
            raise Closed("server closed the connection")
        self.buf += d
        return True

    def line(self, timeout=None):
        """One reply line without CRLF, as str."""
        end = time.time() + (self.timeout if timeout is None else timeout)
        while b"\r\n" not in self.buf:
            left = end - time.time()
            if left <= 0 or not self._fill(left):
                if time.time() >= end:
                    raise Fail("no reply line within the wait (buffer %r)" % self.buf[:80])
        l, self.buf = self.buf.split(b"\r\n", 1)
        return l.decode("latin-1")

    def read(self, n, timeout=None):
        end = time.time() + (self.timeout if timeout is None else timeout)
        while len(self.buf) < n:
            left = end - time.time()
            if left <= 0 or not self._fill(left):
                if time.time() >= end:
                    raise Fail("only %d of %d bytes came" % (len(self.buf), n))
        d, self.buf = self.buf[:n], self.buf[n:]
        return d

    def silent(self, sec):
        """True when nothing arrives for sec seconds."""
        if self.buf:
            return False
        end = time.time() + sec
        while time.time() < end:
            if self._fill(end - time.time()):
                return False
        return True

    def rest(self, timeout=2.0):
        """Everything up to end of file."""
        end = time.time() + timeout
        try:
            while time.time() < end:
                self._fill(end - time.time())
        except Closed:
            pass
        d, self.buf = self.buf, b""
        return d

    def cmd(self, c, timeout=None):
        self.send(c + "\r\n")
        return self.line(timeout)

    def data(self, first):
        """Body announced by a reply line whose last word is its size."""
        n = int(first.split()[-1])
        d = self.read(n + 2)
        eq(d[-2:], b"\r\n", "end of data after %r" % first)
        return d[:-2]

    def put(self, body=b"x", pri=0, delay=0, ttr=60):
        if isinstance(body, str):
            body = body.encode()
        self.send(b"put %d %d %d %d\r\n%s\r\n" % (pri, delay, ttr, len(body), body))
        l = self.line()
        ok(l.startswith("INSERTED "), "put answered %r" % l)
        return int(l.split()[1])

    def reserve(self, timeout=0, wait=None):
        """(id, body) or the reply line when no job came."""
        l = self.cmd("reserve-with-timeout %d" % timeout, wait if wait is not None else timeout + 5)
        if l.startswith("RESERVED "):
            return int(l.split()[1]), self.data(l)
        return l

    def text(self, c):
        l = self.cmd(c)
        ok(l.startswith("OK "), "%s answered %r" % (c, l))
        return self.data(l).decode("utf-8", "replace")

    def stat(self, c="stats"):
        d = {}
        for row in self.text(c).split("\n"):
            if ": " in row:
                k, v = row.split(": ", 1)
                d[k] = v.strip().strip('"')
        return d

    def only(self, tube):
        self.cmd("use " + tube)
        self.cmd("watch " + tube)
        self.cmd("ignore default")
        return self

    def rst(self):
        self.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.s.close()

    def close(self):
        self.s.close()


def free_port(host):
    s = socket.socket()
    s.bind((host, 0))
    p = s.getsockname()[1]
    s.close()
    return p


class Server:
    """A server owned by the case."""

    def __init__(self, host, *args, nofile=None, fsize=None, env=None, listen=True, wrap=(), boot=5.0,
                 pass_fds=()):
        self.host = host
        self.port = free_port(host)
        base = shlex.split(os.environ.get("BEANSTALKD_BIN", "beanstalkd"))
        if not (shutil.which(base[0]) or os.path.exists(base[0])):
            raise Skip("no server binary %r" % base[0])
        cmd = list(wrap) + base + shlex.split(os.environ.get("CASE_ARGS", ""))
        if listen:
            cmd += ["-l", host, "-p", str(self.port)]
        cmd += [str(a) for a in args]
        self.args = cmd

        def pre():
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
            if fsize:
                resource.setrlimit(resource.RLIMIT_FSIZE, (fsize, fsize))

        self.log = tempfile.TemporaryFile()
        e = dict(os.environ)
        e.update(env or {})
        self.p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                  preexec_fn=pre, env=e, start_new_session=True, pass_fds=pass_fds)
        self.boot = boot
        if listen:
            self.wait_up()

    def wait_up(self, host=None, port=None):
        end = time.time() + self.boot
        while time.time() < end:
            if self.p.poll() is not None:
                raise Fail("server ended at start, status %s: %s" % (self.p.returncode, self.tail()))
            try:
                Conn(host or self.host, port or self.port, 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise Fail("server did not accept within %.1f s: %s" % (self.boot, self.tail()))

    def conn(self, **k):
        return Conn(self.host, self.port, **k)

    def tail(self, n=300):
        try:
            self.log.seek(0)
            return self.log.read().decode("utf-8", "replace")[-n:].strip()
        except Exception:
            return ""

    def alive(self):
        return self.p.poll() is None

    def kill(self):
        """SIGKILL to the session this case started, nothing else."""
        if self.p.poll() is None:
            try:
                os.killpg(self.p.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.p.wait()

    stop = kill

    def pids(self):
        """The server and its descendants."""
        kids = {}
        for d in os.listdir("/proc"):
            if d.isdigit():
                try:
                    with open("/proc/%s/stat" % d) as f:
                        kids.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(d))
                except OSError:
                    pass
        out, todo = [], [self.p.pid]
        while todo:
            p = todo.pop()
            out.append(p)
            todo += kids.get(p, [])
        return out

    def rss_kb(self):
        t = 0
        for p in self.pids():
            try:
                with open("/proc/%d/status" % p) as f:
                    for l in f:
                        if l.startswith("VmRSS:"):
                            t += int(l.split()[1])
            except OSError:
                pass
        return t

    def cpu_s(self):
        t = 0.0
        hz = os.sysconf("SC_CLK_TCK")
        for p in self.pids():
            try:
                with open("/proc/%d/stat" % p) as f:
                    a = f.read().rsplit(")", 1)[1].split()
                    t += (int(a[11]) + int(a[12])) / hz
            except OSError:
                pass
        return t


def waldir():
    return tempfile.mkdtemp(prefix="bcase-")


def dir_bytes(d):
    return sum(os.path.getsize(os.path.join(r, f)) for r, _, fs in os.walk(d) for f in fs)


def run(fn):
    name = os.path.basename(sys.argv[0])[:-3]
    if len(sys.argv) < 3:
        print("use: %s HOST PORT" % sys.argv[0])
        sys.exit(2)
    host, port = sys.argv[1], int(sys.argv[2])
    mine = []
    real = Server.__init__

    def noted(self, *a, **k):
        mine.append(self)
        real(self, *a, **k)

    Server.__init__ = noted
    code = 1
    try:
        fn(host, port)
        print("PASS %s" % name)
        code = 0
    except Skip as e:
        print("SKIP %s: %s" % (name, e))
        code = 77
    except Fail as e:
        print("FAIL %s: %s" % (name, " / ".join(str(e).split("\n"))))
    except Exception as e:
        print("FAIL %s: %s: %s" % (name, type(e).__name__, e))
    finally:
        for s in mine:
            if hasattr(s, "p"):
                s.kill()
    sys.exit(code)
