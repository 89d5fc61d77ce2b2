#!/usr/bin/env python3
"""SOURCE beanstalkd/beanstalkd#18
WRONG  (old) jobs of some megabytes were copied again and again and took seconds
RIGHT  a 20 MB job goes in and out in less than 2 s, also with the log (left out while there is none: CASES_BINLOG=0)
"""
from common import *


def case(host, port):
    d = waldir()
    try:
        for args in ((), ("-b", d)) if os.environ.get("CASES_BINLOG") != "0" else ((),):
            s = Server(host, "-z", "50000000", *args)
            c = s.conn(timeout=20).only("t")
            body = os.urandom(1000) * 20000
            a = time.time()
            j = c.put(body)
            eq(c.reserve()[1] == body, True, "body")
            eq(c.cmd("delete %d" % j), "DELETED", "delete")
            e = time.time() - a
            s.kill()
            ok(e < 2, "20 MB took %.1f s %s" % (e, " ".join(args[:1])))
    finally:
        shutil.rmtree(d, ignore_errors=True)


run(case)
