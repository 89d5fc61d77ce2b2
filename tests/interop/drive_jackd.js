// Every command that jackd offers, with its answers checked.
//
// usage: node drive_jackd.js HOST PORT PID        (NODE_PATH names the node_modules with jackd)
//
// PID is the server's; the last step puts it into drain mode. Not driven: pauseTube, because jackd
// 2.2.2 sends it without a line end, which no server can answer; and bodies that are Buffers, which
// it turns into JSON. The pause is sent over a plain socket instead.
'use strict';

const assert = require('assert');
const net = require('net');
const Jackd = require('jackd');

const [host, port, pid] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const STEP_LIMIT_MS = 15000;

async function connect(tube) {
  const client = new Jackd();
  await client.connect({ host, port });
  if (tube) {
    await client.use(tube);
    await client.watch(tube);
    await client.ignore('default');
  }
  return client;
}

// What a plain connection is answered to one line.
function raw(line) {
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, host, () => socket.write(line + '\r\n'));
    socket.once('data', (data) => {
      socket.end();
      resolve(data.toString());
    });
    socket.once('error', reject);
  });
}

const refused = (promise, reply) => assert.rejects(promise, { message: reply });
const value = (yaml, key) => (yaml.match(new RegExp('^' + key + ': "?(.*?)"?$', 'm')) || [])[1];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const steps = {
  async putReserveDelete(c) {
    const id = await c.put('hello');
    const job = await c.reserve();
    assert.deepStrictEqual([job.id, job.payload.toString()], [id, 'hello']);
    await c.delete(id);
    await refused(c.delete(id), 'NOT_FOUND');
    await refused(c.reserveWithTimeout(0), 'TIMED_OUT');
  },

  async tubes(c, tube) {
    assert.strictEqual(await c.getCurrentTube(), tube);
    assert.strictEqual(await c.listTubesWatched(), `---\n- ${tube}\n`);
    assert.strictEqual(await c.watch('more'), 2);
    assert.strictEqual(await c.ignore('more'), 1);
    await refused(c.ignore(tube), 'NOT_IGNORED');
    assert.ok((await c.listTubes()).includes(`\n- ${tube}\n`));
    await refused(c.use('-bad'), 'BAD_FORMAT');
  },

  async releaseWithDelay(c) {
    const id = await c.put('later', { delay: 1, priority: 9, ttr: 30 });
    assert.strictEqual(value(await c.statsJob(id), 'state'), 'delayed');
    await refused(c.reserveWithTimeout(0), 'TIMED_OUT');
    assert.strictEqual((await c.reserveWithTimeout(5)).id, id);
    await c.release(id, { priority: 4, delay: 100 });
    const stats = await c.statsJob(id);
    assert.deepStrictEqual([value(stats, 'state'), value(stats, 'pri')], ['delayed', '4']);
    await refused(c.release(id), 'NOT_FOUND');
    await c.delete(id);
  },

  async buryAndKick(c, tube) {
    const ids = [await c.put('1'), await c.put('2')];
    for (const id of ids) {
      assert.strictEqual((await c.reserve()).id, id);
      await c.bury(id, 3);
    }
    assert.strictEqual(value(await c.statsTube(tube), 'current-jobs-buried'), '2');
    assert.strictEqual((await c.peekBuried()).id, ids[0]);
    assert.strictEqual(await c.kick(1), 1);
    await c.kickJob(ids[1]);
    await refused(c.kickJob(ids[1]), 'NOT_FOUND');
    for (const id of ids) await c.delete(id);
  },

  async peeks(c) {
    await refused(c.peekReady(), 'NOT_FOUND');
    await refused(c.peekDelayed(), 'NOT_FOUND');
    await refused(c.peekBuried(), 'NOT_FOUND');
    const [ready, delayed] = [await c.put('r'), await c.put('d', { delay: 100 })];
    assert.strictEqual((await c.peekReady()).payload.toString(), 'r');
    assert.strictEqual((await c.peekDelayed()).payload.toString(), 'd');
    assert.strictEqual((await c.peek(ready)).id, ready);
    await refused(c.peek('999999999999'), 'NOT_FOUND');
    await c.delete(ready);
    await c.delete(delayed);
  },

  async reserveById(c) {
    const id = await c.put('x', { delay: 100 });
    assert.strictEqual((await c.reserveJob(id)).payload.toString(), 'x');
    await refused(c.reserveJob(id), 'NOT_FOUND');
    await c.delete(id);
  },

  async deadlineSoonAndTouch(c, tube) {
    const id = await c.put('short', { ttr: 2 });
    await c.reserve();
    await refused(c.reserve(), 'DEADLINE_SOON');
    await c.touch(id);
    const other = await connect(tube);
    assert.strictEqual((await other.reserveWithTimeout(5)).id, id);
    await refused(c.touch(id), 'NOT_FOUND');
    await other.delete(id);
    await other.quit();
  },

  async pause(c, tube) {
    const id = await c.put('x');
    assert.strictEqual(await raw(`pause-tube ${tube} 1`), 'PAUSED\r\n');
    await refused(c.reserveWithTimeout(0), 'TIMED_OUT');
    assert.strictEqual((await c.reserveWithTimeout(5)).id, id);
    await c.delete(id);
  },

  async waitingWorker(c, tube) {
    const worker = await connect(tube);
    const waiting = worker.reserve();
    while (value(await c.statsTube(tube), 'current-waiting') === '0') await sleep(10);
    const id = await c.put('wake up');
    assert.strictEqual((await waiting).id, id);
    await worker.quit();
    assert.strictEqual((await c.reserveWithTimeout(5)).id, id);
    await c.delete(id);
  },

  async bodies(c) {
    const limit = Number(value(await c.stats(), 'max-job-size'));
    const crlf = 'a\r\nb\r\ndelete 1\r\n\r\n';
    for (const body of ['\r\n', crlf, '\u20ac'.repeat(100), 'x'.repeat(limit)]) {
      const id = await c.put(body);
      assert.strictEqual((await c.reserve()).payload.toString(), body);
      assert.strictEqual((await c.peek(id)).payload.toString(), body);
      await c.delete(id);
    }
    await refused(c.put('x'.repeat(limit + 1)), 'JOB_TOO_BIG');
    const id = await c.put({ an: 'object' });
    assert.deepStrictEqual(JSON.parse((await c.reserve()).payload), { an: 'object' });
    await c.delete(id);
  },

  async statistics(c, tube) {
    assert.strictEqual(value(await c.stats(), 'pid'), String(pid));
    assert.strictEqual(value(await c.statsTube(tube), 'current-using'), '1');
    await refused(c.statsTube('no-such-tube'), 'Unexpected response: NOT_FOUND');
    await refused(c.statsJob('999999999999'), 'Unexpected response: NOT_FOUND');
  },

  async drain(c) {
    process.kill(pid, 'SIGUSR1');
    while (value(await c.stats(), 'draining') !== 'true') await sleep(10);
    await refused(c.put('after'), 'DRAINING');
  },
};

async function limited(promise) {
  let timer;
  const limit = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error('no answer within the limit')), STEP_LIMIT_MS);
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

async function main() {
  for (const [name, step] of Object.entries(steps)) {
    try {
      const client = await connect('t-' + name);
      await limited(step(client, 't-' + name));
      await client.quit();
    } catch (error) {
      console.log(`FAIL jackd: ${name}: ${error.message}`);
      process.exit(1);
    }
    console.log(`ok   jackd: ${name}`);
  }
  process.exit(0);
}

main();
