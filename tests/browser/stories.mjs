// SPDX-License-Identifier: Apache-2.0
// What people do with the dashboard, done in a browser. Each story is told against a real server.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import {
  Server,
  axe,
  check,
  confirm,
  deployment,
  environment,
  eventually,
  host,
  hosts,
  open,
  pause,
  picture,
  policy,
  tell,
} from './support.mjs';

const WIRE_BYTES_MOST = 80 * 1024;
const manual = { manual: { instructions: 'do it by hand' } };
const VIEWS = [
  '#/fleet',
  '#/rollouts',
  '#/rollout/web',
  '#/target/prod-01',
  '#/policies',
  '#/policy/few',
  '#/journal',
];

/** A fleet that does what a story says: jobs are manual, and end when the story ends them. */
async function small() {
  const server = await new Server().start();
  await server.apply([
    environment('prod'),
    environment('staging'),
    ...hosts(8, 'prod'),
    ...hosts(4, 'staging'),
    deployment('web', manual),
    deployment('gated', manual),
    deployment('quick', { simulated: { seconds: 1 } }),
    policy('few', 'deployment.name == "web" && environment.name == "prod"', {
      resourceConcurrency: {
        groupSelector: 'resource.metadata["env"] == "prod"',
        limitType: 'count',
        limitValue: 2,
      },
    }),
    policy('ask', 'deployment.name == "gated"', { anyApproval: { minApprovals: 1 } }),
  ]);
  return server;
}

const publish = (server, name, tag) => server.post(`deployments/${name}/versions`, { tag });

async function running(server, name) {
  const { items } = await server.get(`jobs?deployment=${name}&open=true&limit=100`);
  return items;
}

async function firstRun() {
  const server = await new Server('--demo').start(/#code=\S+\n/);
  try {
    const link = /http:\S+#code=(\S+)/.exec(server.said);
    const page = await open(server, { how: 'x'.repeat(9) });
    await page.getByRole('alert').waitFor(); // a wrong token is told
    page.errors.length = 0;
    page.asked.length = 0;
    let wire = 0;
    page.on('response', async (answer) => {
      if (!answer.url().includes('/api/')) wire += Number(answer.headers()['content-length'] ?? 0);
    });
    await page.goto('about:blank');
    await page.goto(link[0]);
    await page.getByText('48 targets').waitFor();
    check(!page.url().includes('code'), `the code is still in the address: ${page.url()}`);
    check((await page.locator('nav [aria-current]').innerText()) === 'Fleet', 'one is nowhere');
    const urls = page.asked.map((request) => request.url()).filter((url) => url !== 'about:blank');
    check(
      urls.every((url) => url.startsWith(server.url)),
      `asked elsewhere: ${urls}`,
    );
    check(
      urls.every((url) => !url.split('#')[0].includes(link[1]) && !/token|drover_/.test(url)),
      `a secret in an address: ${urls}`,
    );
    check(wire > 5000 && wire <= WIRE_BYTES_MOST, `${wire} bytes on the wire`);
    check((await page.context().cookies()).length === 0, 'a cookie was set');
    await page.reload();
    await page.getByText('48 targets').waitFor(); // the tab keeps its session
    const other = await (await page.context().browser().newContext()).newPage();
    await other.goto(link[0]);
    await other.getByText('has been used').waitFor();
    await eventually('something moves', async () =>
      /in flight/.test(await page.locator('main').innerText()),
    );
    await page
      .locator('canvas')
      .nth(1)
      .hover({ position: { x: 300, y: 12 } });
    await page.locator('.hint p').filter({ hasNotText: 'asking' }).waitFor();
    await picture(page, 'fleet');
    await page.goto(`${server.url}/#/rollout/os-patch`);
    await page.locator('.u-over').nth(1).waitFor();
    await eventually('a plan', async () =>
      /planned to end|complete/.test(await page.locator('.big').innerText()),
    );
    await picture(page, 'rollout');
    check(page.errors.length === 0, page.errors.join('\n'));
  } finally {
    await server.end();
  }
}

async function watchRollout(server) {
  const page = await open(server, { path: '#/rollouts', timezoneId: 'Asia/Tokyo' });
  const card = page.locator('.rollout', { hasText: 'quick' });
  await card.waitFor();
  await publish(server, 'quick', '1.0');
  await card.getByText('100%').waitFor();
  await publish(server, 'quick', '2.0');
  await eventually('it goes back', async () => !/100%/.test(await card.innerText()));
  await card.getByText('100%').waitFor();
  check(/2\.0/.test(await card.innerText()), await card.innerText());
  await page.goto(`${server.url}/#/journal`);
  const row = page.getByRole('row', { name: /quick 2.0 on prod-01 in prod succeeded/ });
  await row.waitFor();
  await picture(page, 'journal');
  const [shown, iso, hover] = await row
    .locator('time')
    .evaluate((time) => [time.innerText, time.dateTime, time.title]);
  const there = new Date(Date.parse(iso) + 9 * 3600e3).toISOString().slice(11, 19);
  check(shown === there && hover === `${iso} (UTC)`, `${shown}, ${hover}, not ${there}`);
  const number = await row.getByRole('button').innerText();
  await row.getByRole('button').click();
  await page.getByText(`drover replay prod-01 --until ${number}`).waitFor();
  check(page.errors.length === 0, page.errors.join('\n'));
}

async function explainWaiting(server) {
  await publish(server, 'web', '1.0');
  await eventually('jobs', async () => (await running(server, 'web')).length >= 6);
  const page = await open(server, { path: '#/fleet?change=web' });
  const map = page.getByRole('application', { name: /^prod: 8 targets/ });
  await map.waitFor();
  await map.focus();
  await page.keyboard.press('ArrowRight');
  for (let i = 0; i < 7; i++) await page.keyboard.press('ArrowRight');
  await page.locator('.hint', { hasText: 'slots are taken' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'prod-08' }).waitFor();
  const web = page.locator('.placement', { hasText: 'web' }).first();
  await web.getByText('2 of 2 slots are taken').first().waitFor();
  const text = await web.innerText();
  check(/Held by .*prod-0/.test(text) && /Released when these are done/.test(text), text);
  await picture(page, 'target');
  await page.goto(`${server.url}/#/fleet?as=list&change=web`);
  await page.getByRole('link', { name: 'prod-08' }).waitFor(); // the same without cells
  check(page.errors.length === 0, page.errors.join('\n'));
}

async function followLog(server) {
  const gate = join(server.folder, 'go-on');
  const text = `echo 'line 1 of <b>'; while [ ! -e '${gate}' ]; do sleep 0.1; done; echo line 2`;
  const run = ['/bin/sh', '-c', text];
  const spec = { resourceSelector: 'resource.name == "prod-01"', job: { command: { run } } };
  await server.apply([{ ...deployment('loud', manual), spec }]);
  await publish(server, 'loud', '1.0');
  const page = await open(server, { path: '#/target/prod-01' });
  const log = page.locator('.log');
  await log.getByText('line 1 of <b>').waitFor();
  await page.getByText('following').waitFor();
  check(!/line 2/.test(await log.innerText()), 'it has not waited');
  writeFileSync(gate, '');
  await log.getByText('line 2').waitFor();
  await page.locator('.card', { hasText: 'History' }).getByText('loud').waitFor();
  await server.call('DELETE', 'deployments/loud');
  check(page.errors.length === 0, page.errors.join('\n'));
}

/** To the next thing that has this text, by the Tab key alone. */
async function tabTo(page, text) {
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab');
    const found = await page.evaluate(() => document.activeElement?.textContent ?? '');
    if (found === text) return;
  }
  throw new Error(`the Tab key does not reach ${text}`);
}

async function byKeyboard(server) {
  const page = await open(server, { path: '#/rollouts' });
  await page.locator('.rollout', { hasText: 'quick' }).waitFor();
  await page.keyboard.press('Tab');
  await tabTo(page, 'Freeze everything…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await page.keyboard.press('Escape'); // changed one's mind
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.goto(`${server.url}/#/rollout/quick`);
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  await tabTo(page, 'Pause…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByLabel('Why').waitFor();
  await page.keyboard.type('by hand');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Resume…' }).waitFor();
  await tabTo(page, 'Resume…');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor(); // Cancel comes first
  await tabTo(page, 'Resume');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  check(page.errors.length === 0, page.errors.join('\n'));
}

async function approveVersion(server) {
  await publish(server, 'gated', '1.0');
  const page = await open(server, { path: '#/rollout/gated' });
  await page.locator('.causes').getByText('0 of 1 approvals were given').waitFor();
  check((await running(server, 'gated')).length === 0, 'it started before');
  await page.locator('.causes').getByRole('button', { name: 'Approve' }).click();
  await confirm(page, 'Approve', /approval of gated 1\.0 is counted/);
  await page.locator('.legend', { hasText: 'in flight' }).waitFor();
  check((await running(server, 'gated')).length > 0, 'nothing started');
}

async function retryFailure(server) {
  const job = (await running(server, 'web')).find((one) => one.environment === 'staging');
  await server.post(`jobs/${job.number}/complete`, { outcome: 'failed', reason: 'disk is full' });
  const page = await open(server, { path: '#/rollout/web' });
  const row = page
    .locator('section', { hasText: 'Retry all' })
    .locator('tr', { hasText: job.resource });
  await row.getByText('disk is full').waitFor();
  await picture(page, 'failed');
  await page.locator('.legend a', { hasText: 'failed' }).click();
  await page.locator('.rows').getByRole('link', { name: job.resource }).waitFor();
  check((await page.locator('.rows tbody tr').count()) === 1, 'others are listed as well');
  check((await page.title()) === 'Fleet · Drover', await page.title());
  await page.goBack();
  await row.getByRole('button', { name: 'Retry' }).click();
  await confirm(page, 'Retry', /tried again on staging/);
  await row.waitFor({ state: 'detached' });
  const again = (await running(server, 'web')).find((one) => one.resource === job.resource);
  check(again && again.number !== job.number, 'no new job');
}

async function pauseResume(server) {
  const page = await open(server, { path: '#/rollout/quick' });
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('dialog').getByLabel('Why').fill('lunch');
  await confirm(page, 'Pause', /Nothing more of quick starts/);
  await publish(server, 'quick', '3.0');
  await page.locator('.causes', { hasText: 'paused' }).waitFor();
  const buttons = page.getByRole('button', { name: 'Pause' });
  check((await buttons.count()) === 0, 'what is paused can be paused');
  check((await running(server, 'quick')).length === 0, 'it started');
  await page.getByRole('button', { name: 'Resume' }).click();
  await confirm(page, 'Resume', /may start, within every limit/);
  await page.getByText('100%').waitFor();
  const { items } = await server.get('journal?limit=1000');
  const act = items.findLast((one) => one.entry.act === 'pause');
  check(act?.entry.reason === 'lunch', 'the reason is not in the journal');
}

async function freezeThaw(server) {
  const page = await open(server, { path: '#/rollouts' });
  await page.getByRole('button', { name: 'Freeze everything' }).click();
  await page.getByRole('dialog').getByLabel('Why').fill('holidays');
  await confirm(page, 'Freeze everything', /Nothing starts any more/);
  const list = page.locator('.freezes');
  await list.getByText('holidays').waitFor();
  await picture(page, 'frozen');
  await list.getByRole('button', { name: 'Thaw' }).click();
  await confirm(page, 'Thaw', /may start again/);
  await list.waitFor({ state: 'detached' });
  check(page.errors.length === 0, page.errors.join('\n'));
}

async function windowOnTimeline(server) {
  const rule = { rrule: 'FREQ=HOURLY;BYMINUTE=0;BYSECOND=0', durationMinutes: 60, timezone: 'UTC' };
  await server.apply([
    policy('always', 'deployment.name == "quick"', { deploymentWindow: rule }),
  ]);
  const page = await open(server, { path: '#/rollout/quick' });
  await page.getByRole('img', { name: /1 windows; the latest are listed below/ }).waitFor();
  await picture(page, 'window');
  await server.call('DELETE', 'rolloutpolicies/always');
}

async function whatIf(server) {
  const page = await open(server, { path: '#/policy/few' });
  await page.getByText('At most 2 of the targets').waitFor();
  await page.getByText(/matches 8 targets/).waitFor();
  const copy = page.getByLabel('A copy of the policy');
  const text = await copy.inputValue();
  check(await page.getByRole('button', { name: 'Save' }).isDisabled(), 'saved without a look');
  await copy.fill(text.replace('"limitValue": 2', '"limitValue": "two"'));
  await page.getByRole('button', { name: 'Compare plans' }).click();
  await page.getByRole('alert').waitFor();
  await copy.fill(text.replace('"limitValue": 2', '"limitValue": 4'));
  await page.getByRole('button', { name: 'Compare plans' }).click();
  const both = page.getByRole('region', { name: 'Both plans' });
  await both.waitFor();
  const rows = await both.getByRole('row').allInnerTexts();
  const takes = rows.find((row) => row.startsWith('takes')).split('\t');
  check(takes[1] !== takes[2], `the plans are alike: ${rows.join('; ')}`);
  await both.locator('canvas').first().waitFor();
  await picture(page, 'what-if');
  const before = await server.get('rolloutpolicies/few');
  check(before.spec.rules[0].resourceConcurrency.limitValue === 2, 'comparing has changed it');
  await page.getByRole('button', { name: 'Save this policy' }).click();
  await page.getByText('Saved.').waitFor();
  const after = await server.get('rolloutpolicies/few');
  check(after.spec.rules[0].resourceConcurrency.limitValue === 4, 'it was not saved');
  check(page.errors.length === 0, page.errors.join('\n'));
}

async function lostConnection(server) {
  const page = await open(server, { how: server.token, path: '#/rollouts' });
  const card = page.locator('.rollout', { hasText: 'quick' });
  await card.getByText('3.0').waitFor();
  await server.stop('SIGKILL');
  await page.getByText('The connection is lost.').waitFor();
  await page.getByText('not live').waitFor();
  check((await page.locator('main.stale').count()) === 1, 'what is old looks fresh');
  check(/was true at/.test(await page.locator('.lost').innerText()), 'since when is not said');
  await picture(page, 'lost');
  await server.start();
  await publish(server, 'quick', '4.0');
  await page.getByText('The connection is lost.').waitFor({ state: 'detached' });
  await card.getByText('4.0').waitFor();
  await page.getByText('live', { exact: true }).waitFor();
}

async function viewersToken(server) {
  const { token } = await server.post('tokens', { name: 'looker', role: 'viewer' });
  // What was refused before the token was shown does not end its session when it comes late.
  const page = await open(server, { how: token, path: '#/rollout/gated', late: '**/api/v1/fleet' });
  await page.getByText('viewer').waitFor();
  await page.locator('.legend').waitFor();
  for (const view of VIEWS) {
    await page.goto(`${server.url}/${view}`);
    await page.locator('h1').waitFor();
    await pause(150);
    const names = await page.getByRole('button').allInnerTexts();
    const acts = names.filter((name) =>
      /Pause|Resume|Retry|Approve|Freeze|Skip|Roll|Save/.test(name),
    );
    check(acts.length === 0, `${view} offers ${acts}`);
  }
  const status = await page.evaluate(async () => {
    const answer = await fetch('/api/v1/actions/pause', {
      method: 'POST',
      body: '{"deployment":"web"}',
      headers: { Authorization: `Bearer ${sessionStorage.getItem('drover-token')}` },
    });
    return answer.status;
  });
  check(status === 403, `the server answered ${status}`);
}

async function narrowAndDark(server) {
  for (const [name, settings] of [
    ['narrow', { viewport: { width: 375, height: 740 }, deviceScaleFactor: 2 }],
    ['dark', { colorScheme: 'dark' }],
  ]) {
    const page = await open(server, settings);
    for (const view of VIEWS) {
      await page.goto(`${server.url}/${view}`);
      await page.locator('h1').waitFor();
      await pause(350);
      const [wide, room, light] = await page.evaluate(() => [
        document.scrollingElement.scrollWidth,
        window.innerWidth,
        Number(/\d+/.exec(getComputedStyle(document.body).backgroundColor)[0]),
      ]);
      check(wide <= room, `${name} ${view}: ${wide} wide, ${room} is there`);
      check(name !== 'dark' || light < 60, `${view} is not dark`);
      await picture(page, `${name}-${view.split('/')[1]}`);
    }
    check(page.errors.length === 0, page.errors.join('\n'));
    await page.context().close();
  }
}

async function accessible(server) {
  const found = [];
  for (const colorScheme of ['light', 'dark']) {
    const page = await open(server, { colorScheme });
    const views = [...VIEWS, '#/fleet?as=list'];
    for (const view of colorScheme === 'light' ? views : views.slice(0, 3)) {
      await page.goto(`${server.url}/${view}`);
      await page.locator('h1').waitFor();
      await pause(250);
      for (const line of await axe(page)) found.push(`${colorScheme} ${view}: ${line}`);
    }
    await page.goto(`${server.url}/#/rollout/web`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('dialog').waitFor();
    for (const line of await axe(page)) found.push(`${colorScheme} dialog: ${line}`);
    await page.context().close();
  }
  check(found.length === 0, found.join('\n'));
}

async function hostile() {
  const server = await new Server().start();
  const markup = '<img src=x onerror="window.pwned=1"><script>window.pwned=2</script>';
  const backwards =
    '\u202etxt.exe \u05e9\u05dc\u05d5\u05dd \u0627\u0644\u0639\u0631\u0628\u064a\u0629';
  try {
    await server.apply([
      environment('prod'),
      host('h1', { env: 'prod' }),
      host('h2', { env: 'prod' }),
      { ...deployment('d', manual), spec: { resourceSelector: 'true', job: manual } },
    ]);
    // Whatever of it the server takes is shown; what it refuses cannot be shown.
    const tried = [
      host(markup, { env: 'prod' }),
      host(backwards, { env: 'prod' }),
      host('h3', { env: 'prod', note: markup }),
      host('h4', { env: 'prod', long: 'x'.repeat(10240) }),
      deployment(markup, manual),
      deployment(backwards, manual),
      policy('p', 'true', { versionSelector: { selector: 'true', description: markup } }),
      policy(`p ${markup}`, 'true', { retry: { maxRetries: 1 } }),
    ];
    let taken = 0;
    for (const document of tried)
      await server.apply([document]).then(
        () => taken++,
        () => undefined,
      );
    const tags = ['1.0', markup, backwards, 'y'.repeat(10240)];
    for (const tag of tags)
      await publish(server, 'd', tag).then(
        () => taken++,
        () => undefined,
      );
    const jobs = await eventually('jobs', async () => {
      const list = await running(server, 'd');
      return list.length >= 2 ? list : null;
    });
    await server.post(`jobs/${jobs[0].number}/complete`, { outcome: 'failed', reason: markup });
    await server.post(`jobs/${jobs[1].number}/complete`, {
      outcome: 'failed',
      reason: `${backwards} ${'z'.repeat(10240)}`,
    });
    await server.post('actions/freeze', { name: 'f', reason: markup });
    check(taken >= 7, `the server takes only ${taken}: the story shows little`);
    const page = await open(server);
    const views = [
      '#/fleet',
      '#/fleet?as=list',
      '#/fleet?by=label:note',
      '#/fleet?by=version',
      '#/rollouts',
      '#/rollout/d',
      `#/rollout/${encodeURIComponent(markup)}`,
      '#/target/h3',
      '#/target/h4',
      `#/target/${encodeURIComponent(jobs[0].resource)}`,
      `#/target/${encodeURIComponent(jobs[1].resource)}`,
      '#/policies',
      '#/journal',
      `#/${encodeURIComponent(markup)}`,
      '#/target/%E0%A4%A',
    ];
    for (const view of views) {
      await page.goto(`${server.url}/${view}`);
      await page.locator('main').waitFor();
      await pause(250);
      const [pwned, images, wide, room] = await page.evaluate(() => [
        window.pwned,
        document.querySelectorAll('main img, main script').length,
        document.scrollingElement.scrollWidth,
        window.innerWidth,
      ]);
      check(pwned === undefined && images === 0, `${view}: markup was taken for markup`);
      check(wide <= room, `${view}: ${wide} wide, ${room} is there`);
    }
    await page.goto(`${server.url}/#/rollout/d`);
    await page.getByText('onerror="window.pwned=1"').first().waitFor(); // shown as what it is
    await page.getByText('\\u202etxt.exe').first().waitFor(); // not as exe.txt
    await picture(page, 'hostile');
    check(page.errors.length === 0, page.errors.join('\n'));
  } finally {
    await server.end();
  }
}

async function tenThousand() {
  const server = await new Server().start();
  try {
    const envs = ['east', 'north', 'south', 'west'];
    await server.apply(envs.map(environment));
    for (const env of envs)
      await server.apply(
        Array.from({ length: 2500 }, (_, i) =>
          host(`${env}-${String(i).padStart(4, '0')}`, { env, rack: `r${i % 40}` }),
        ),
      );
    await server.apply([
      deployment('web', { simulated: { seconds: 2, failPercent: 2 } }),
      policy('pace', 'true', {
        gradualRollout: { rolloutType: 'linear-normalized', timeScaleInterval: 900 },
      }),
    ]);
    await publish(server, 'web', '1.0');
    const page = await open(server);
    await page.getByText('10,000 targets').waitFor();
    await page
      .getByText(/in flight/)
      .first()
      .waitFor();
    const before = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
    const slow = await page.evaluate(
      () =>
        new Promise((done) => {
          const found = [];
          let last = performance.now();
          const end = last + 6000;
          const frame = (at) => {
            found.push(at - last);
            last = at;
            if (at < end) requestAnimationFrame(frame);
            else
              done(
                found
                  .slice(1)
                  .sort((a, b) => b - a)
                  .slice(0, 5),
              );
          };
          requestAnimationFrame(frame);
        }),
    );
    // Generous, and one frame may be the machine's: other tests run beside. `make bench` measures.
    check(slow[1] < 400, `the slowest frames: ${slow.map(Math.round)} ms`);
    const after = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
    check(after < before + 40e6, `memory grew from ${before} to ${after}`);
    await picture(page, 'ten-thousand');
    await page.getByLabel('Group by').selectOption({ label: 'label rack' });
    await page.getByRole('heading', { name: /^r39/ }).waitFor();
    check((await page.locator('canvas').count()) === 40, 'not every rack is shown');
    await page.getByRole('button', { name: 'Show as list' }).click();
    await page.getByRole('searchbox').fill('west-2499');
    await page.getByRole('link', { name: 'west-2499' }).click();
    await page.getByRole('heading', { name: 'west-2499' }).waitFor();
    check(page.errors.length === 0, page.errors.join('\n'));
  } finally {
    await server.end();
  }
}

let shared;
const on = (story) => async () => story((shared ??= await small()));

const status = await tell({
  'the first run, through the one-time link': firstRun,
  'a rollout is watched as it goes': on(watchRollout),
  'a waiting target is explained, by keyboard': on(explainWaiting),
  'the log of a running job grows': on(followLog),
  'by the keyboard alone': on(byKeyboard),
  'a version is approved': on(approveVersion),
  'a failure is tried again': on(retryFailure),
  'a pause and its end': on(pauseResume),
  'a freeze and its end': on(freezeThaw),
  'a window on the timeline': on(windowOnTimeline),
  'what if: both plans before a policy is saved': on(whatIf),
  'the connection is lost and comes back': on(lostConnection),
  'a viewer sees no buttons they may not use': on(viewersToken),
  'narrow, and dark': on(narrowAndDark),
  'axe finds nothing serious': on(accessible),
  'hostile documents are shown as text': hostile,
  'ten thousand targets': tenThousand,
});
await shared?.end();
process.exit(status);
