"""Every command that greenstalk offers, with its answers checked.

usage: drive_greenstalk.py tcp HOST PORT PID | unix PATH 0 PID

PID is the server's; the last step puts it into drain mode.
"""
import os, signal, sys, threading, time

import greenstalk

KIND, HOST, PORT, PID = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ADDRESS = HOST if KIND == "unix" else (HOST, PORT)


def client(tube, encoding="utf-8"):
    return greenstalk.Client(ADDRESS, encoding=encoding, use=tube, watch=tube)


def eq(got, want):
    assert got == want, "got %r, want %r" % (got, want)


def refused(error, call, *args, **kwargs):
    try:
        got = call(*args, **kwargs)
    except error:
        return
    raise AssertionError("got %r, want %s" % (got, error.__name__))


def put_reserve_delete(c, tube):
    job_id = c.put("hello")
    job = c.reserve()
    eq((job.id, job.body), (job_id, "hello"))
    c.delete(job)
    refused(greenstalk.NotFoundError, c.delete, job)
    refused(greenstalk.TimedOutError, c.reserve, timeout=0)


def priority_and_order(c, tube):
    ids = [c.put("x", priority=p) for p in (5, 0, 5, 2**32 - 1, 0)]
    got = [c.reserve(timeout=0).id for _ in ids]
    eq(got, [ids[1], ids[4], ids[0], ids[2], ids[3]])
    for job_id in ids:
        c.delete(job_id)


def tubes(c, tube):
    eq(c.using(), tube)
    eq(c.watching(), [tube])
    eq(c.watch("more"), 2)
    eq(c.watch("more"), 2)
    eq(sorted(c.watching()), sorted([tube, "more"]))
    eq(c.ignore("more"), 1)
    refused(greenstalk.NotIgnoredError, c.ignore, tube)
    assert tube in c.tubes() and "default" in c.tubes() and "more" not in c.tubes()
    refused(greenstalk.BadFormatError, c.use, "-bad")
    refused(greenstalk.BadFormatError, c.use, "x" * 201)


def delay_and_release(c, tube):
    begin = time.monotonic()
    job_id = c.put("later", delay=1)
    refused(greenstalk.TimedOutError, c.reserve, timeout=0)
    eq(c.stats_job(job_id)["state"], "delayed")
    job = c.reserve(timeout=5)
    assert 0.9 < time.monotonic() - begin < 2, "delay of 1 s took %.2f s" % (time.monotonic() - begin)
    c.release(job, priority=7, delay=0)
    stats = c.stats_job(job_id)
    eq((stats["state"], stats["pri"], stats["releases"]), ("ready", 7, 1))
    job = c.reserve(timeout=0)
    c.release(job, delay=100)
    eq(c.stats_job(job_id)["state"], "delayed")
    refused(greenstalk.NotFoundError, c.release, job)
    c.delete(job_id)


def bury_and_kick(c, tube):
    ids = [c.put(str(n)) for n in range(3)]
    for _ in ids:
        c.bury(c.reserve(timeout=0), priority=3)
    eq(c.stats_tube(tube)["current-jobs-buried"], 3)
    eq(c.peek_buried().id, ids[0])
    eq(c.kick(2), 2)
    c.kick_job(ids[2])
    refused(greenstalk.NotFoundError, c.kick_job, ids[2])
    stats = c.stats_job(ids[2])
    eq((stats["state"], stats["pri"], stats["buries"], stats["kicks"]), ("ready", 3, 1, 1))
    delayed = c.put("d", delay=100)
    eq(c.kick(10), 1)
    eq(c.kick(10), 0)
    for job_id in ids + [delayed]:
        c.delete(job_id)


def peeks(c, tube):
    for peek in (c.peek_ready, c.peek_delayed, c.peek_buried):
        refused(greenstalk.NotFoundError, peek)
    ready, delayed = c.put("r"), c.put("d", delay=100)
    eq((c.peek_ready().id, c.peek_ready().body), (ready, "r"))
    eq((c.peek_delayed().id, c.peek_delayed().body), (delayed, "d"))
    eq(c.peek(ready).body, "r")
    refused(greenstalk.NotFoundError, c.peek, 2**60)
    c.bury(c.reserve(timeout=0))
    eq(c.peek_buried().id, ready)
    c.delete(ready)
    c.delete(delayed)


def reserve_by_id(c, tube):
    first, second = c.put("1"), c.put("2", delay=100)
    eq(c.reserve_job(second).body, "2")
    refused(greenstalk.NotFoundError, c.reserve_job, second)
    eq(c.reserve(timeout=0).id, first)
    c.delete(first)
    c.delete(second)


def timeouts_and_deadlines(c, tube):
    begin = time.monotonic()
    refused(greenstalk.TimedOutError, c.reserve, timeout=1)
    assert 0.9 < time.monotonic() - begin < 2
    job_id = c.put("short", ttr=2)
    job = c.reserve(timeout=0)
    begin = time.monotonic()
    refused(greenstalk.DeadlineSoonError, c.reserve)
    assert 0.8 < time.monotonic() - begin < 2, "DEADLINE_SOON after %.2f s" % (time.monotonic() - begin)
    c.touch(job)
    assert c.stats_job(job)["time-left"] >= 1
    other = client(tube)
    eq(other.reserve(timeout=5).id, job_id)
    eq(other.stats_job(job_id)["timeouts"], 1)
    refused(greenstalk.NotFoundError, c.touch, job)
    refused(greenstalk.NotFoundError, c.delete, job)
    other.delete(job_id)
    other.close()


def pause(c, tube):
    job_id = c.put("x")
    c.pause_tube(tube, 1)
    stats = c.stats_tube(tube)
    eq((stats["pause"], stats["cmd-pause-tube"]), (1, 1))
    refused(greenstalk.TimedOutError, c.reserve, timeout=0)
    begin = time.monotonic()
    eq(c.reserve(timeout=5).id, job_id)
    assert 0.5 < time.monotonic() - begin < 2
    c.delete(job_id)
    refused(greenstalk.NotFoundError, c.pause_tube, "no-such-tube", 1)


def waiting_worker(c, tube):
    got = []
    worker = client(tube)
    thread = threading.Thread(target=lambda: got.append(worker.reserve(timeout=10).body))
    thread.start()
    while c.stats_tube(tube)["current-waiting"] == 0:
        time.sleep(0.01)
    c.put("wake up")
    thread.join(5)
    eq(got, ["wake up"])
    worker.close()
    job = c.reserve(timeout=5)  # the worker's connection gave it back
    eq(job.body, "wake up")
    c.delete(job)


def bodies(c, tube):
    b = client(tube, encoding=None)
    limit = b.stats()["max-job-size"]
    every = bytes(range(256))
    for body in (b"", b"\r\n", b"a\r\nb\r\ndelete 1\r\n\r\n", b"\0" * 10, every * 100, b"x" * limit):
        job_id = b.put(body)
        eq(b.peek(job_id).body, body)
        eq(b.reserve(timeout=0).body, body)
        b.delete(job_id)
    refused(greenstalk.JobTooBigError, b.put, b"x" * (limit + 1))
    eq(b.using(), tube)
    b.close()
    job_id = c.put("\u00e4\u20ac")
    eq(c.peek(job_id).body, "\u00e4\u20ac")
    c.delete(job_id)


def statistics(c, tube):
    job_id = c.put("x", priority=1023, ttr=120)
    stats = c.stats()
    assert len(stats) >= 51, "%d rows" % len(stats)
    eq((stats["pid"], stats["draining"], len(stats["id"])), (PID, "false", 16))
    assert stats["current-connections"] >= 1 and stats["cmd-put"] >= 1
    of_tube = c.stats_tube(tube)
    eq(list(of_tube), ["name", "current-jobs-urgent", "current-jobs-ready", "current-jobs-reserved",
                       "current-jobs-delayed", "current-jobs-buried", "total-jobs", "current-using",
                       "current-watching", "current-waiting", "cmd-delete", "cmd-pause-tube", "pause",
                       "pause-time-left"])
    eq((of_tube["current-jobs-urgent"], of_tube["current-jobs-ready"]), (1, 1))
    of_job = c.stats_job(job_id)
    eq(list(of_job), ["id", "tube", "state", "pri", "age", "delay", "ttr", "time-left", "file", "reserves",
                      "timeouts", "releases", "buries", "kicks"])
    eq((of_job["id"], of_job["pri"], of_job["ttr"], of_job["file"]), (job_id, 1023, 120, 0))
    refused(greenstalk.NotFoundError, c.stats_job, 2**60)
    refused(greenstalk.NotFoundError, c.stats_tube, "no-such-tube")
    c.delete(job_id)


def drain(c, tube):
    before = c.put("before")
    os.kill(PID, signal.SIGUSR1)
    end = time.monotonic() + 5
    while c.stats()["draining"] != "true":
        assert time.monotonic() < end, "no drain mode 5 s after SIGUSR1"
        time.sleep(0.01)
    refused(greenstalk.DrainingError, c.put, "after")
    c.delete(c.reserve(timeout=0))
    refused(greenstalk.NotFoundError, c.peek, before)


STEPS = [put_reserve_delete, priority_and_order, tubes, delay_and_release, bury_and_kick, peeks,
         reserve_by_id, timeouts_and_deadlines, pause, waiting_worker, bodies, statistics, drain]


def main():
    for step in STEPS:
        name = "greenstalk %s: %s" % (KIND, step.__name__)
        tube = "t-" + step.__name__
        try:
            with client(tube) as c:
                step(c, tube)
        except Exception as e:
            print("FAIL %s: %s: %s" % (name, type(e).__name__, e), flush=True)
            return 1
        print("ok   %s" % name, flush=True)
    return 0


sys.exit(main())
