// SPDX-License-Identifier: Apache-2.0
// Measures the dashboard with 10,000 targets; prints rows for scripts/run-bench.
import { deployment, environment, host, open, pause, policy, Server } from './support.mjs';

const ENVIRONMENTS = ['east', 'north', 'south', 'west'];
const EACH = 2500;
const STARTS_SECONDS = 2000; // five starts a second, five entries each
const FRAME_SECONDS = 30;
const MINUTES = Number(process.env.DASHBOARD_MINUTES ?? 10);

const row = (name, value, unit, goal) => console.log([name, value, unit, goal].join('\t'));

async function fill(server) {
  await server.apply(ENVIRONMENTS.map(environment));
  for (const env of ENVIRONMENTS)
    await server.apply(
      Array.from({ length: EACH }, (_, i) =>
        host(`${env}-${String(i).padStart(4, '0')}`, { env, rack: `r${i % 40}` }),
      ),
    );
  await server.apply([
    deployment('web', { simulated: { seconds: 2, failPercent: 1 } }),
    policy('pace', 'true', {
      gradualRollout: { rolloutType: 'linear-normalized', timeScaleInterval: STARTS_SECONDS },
    }),
  ]);
  await server.post('deployments/web/versions', { tag: '1.0' });
}

/** Milliseconds from the answer to the page until every cell is drawn; the median of several. */
async function firstView(page) {
  await page.addInitScript(() => {
    const look = () => {
      if (document.querySelectorAll('canvas').length < 4) requestAnimationFrame(look);
      else window.drawnAt = performance.now();
    };
    requestAnimationFrame(look);
  });
  const found = [];
  for (let i = 0; i < 7; i++) {
    await page.reload();
    await page.waitForFunction(() => window.drawnAt);
    found.push(
      await page.evaluate(
        () => window.drawnAt - performance.getEntriesByType('navigation')[0].responseStart,
      ),
    );
  }
  return found.sort((a, b) => a - b)[3];
}

const frames = (page, seconds) =>
  page.evaluate(
    (ms) =>
      new Promise((done) => {
        let slowest = 0;
        let count = -1;
        let last = performance.now();
        const end = last + ms;
        const frame = (at) => {
          if (++count > 0) slowest = Math.max(slowest, at - last);
          last = at;
          if (at < end) requestAnimationFrame(frame);
          else done({ slowest, count });
        };
        requestAnimationFrame(frame);
      }),
    seconds * 1000,
  );

async function heap(session) {
  await session.send('HeapProfiler.collectGarbage');
  await session.send('HeapProfiler.collectGarbage');
  return (await session.send('Runtime.getHeapUsage')).usedSize / 1e6;
}

const server = await new Server().start();
let status = 0;
try {
  await fill(server);
  const page = await open(server);
  await page.getByText('10,000 targets').waitFor();
  row('dashboard, 10,000 targets, first view', (await firstView(page)).toFixed(0), 'ms', '<= 500');
  await page.getByText('live', { exact: true }).waitFor();
  await pause(2000);
  const before = (await server.get('info')).sequence;
  const { slowest, count } = await frames(page, FRAME_SECONDS);
  const events = ((await server.get('info')).sequence - before) / FRAME_SECONDS;
  row('dashboard, 10,000 targets, entries', events.toFixed(1), '/s', '>= 20');
  row('dashboard, 10,000 targets, frames', (count / FRAME_SECONDS).toFixed(1), '/s', '-');
  row('dashboard, 10,000 targets, slowest frame', slowest.toFixed(1), 'ms', '<= 50');
  const session = await page.context().newCDPSession(page);
  await pause(10_000); // lists that are kept short are full by then
  const first = await heap(session);
  await pause(MINUTES * 60_000);
  const last = await heap(session);
  row(`dashboard, heap after ${MINUTES} minutes`, last.toFixed(1), 'MB', '-');
  row(`dashboard, heap grew in ${MINUTES} minutes`, (last - first).toFixed(2), 'MB', '<= 3');
} catch (error) {
  console.error(error);
  status = 1;
}
await server.end();
process.exit(status);
