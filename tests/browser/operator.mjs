// SPDX-License-Identifier: Apache-2.0
// The operator's dashboard as a person uses it. check_operator_dashboard.py has the cluster: 12
// nodes, 4 of them the compartment gpu; Skyhook base is done, slow works on 3 nodes for ever. Of 6
// clusters 4 wait for the approval of the partition rest of the Bundle fleet-default/app.
import { axe, check, confirm, eventually, openAt, picture, tell } from './support.mjs';

const { URL: url, TOKEN: token, OF_SKYHOOKS, OF_SPACE } = process.env;
const fleet = async () => (await fetch(`${url}/api/v1/fleet`)).json();

async function looking() {
  const page = await openAt(url);
  await page.getByText('18 targets').waitFor();
  await page.getByRole('heading', { name: /^canary/ }).waitFor();
  await page.getByRole('heading', { name: /^gpu/ }).waitFor();
  await page.getByRole('heading', { name: /^default/ }).waitFor();
  check((await page.getByRole('link', { name: 'Policies' }).count()) === 0, 'there are policies');
  await picture(page, 'operator-fleet');
  await page.goto(`${url}/#/target/node-00001`);
  await page.getByText('the next batch begins when the present one has ended').first().waitFor();
  await page.getByRole('link', { name: 'node-00000' }).first().waitFor();
  await picture(page, 'operator-target');
  await page.goto(`${url}/#/rollout/slow`);
  await page.getByText('planned to end at').waitFor();
  await page.getByText('1 of 1 now').waitFor();
  await page.getByText('2 of 2 now').waitFor();
  check((await page.getByRole('button', { name: /Pause|Resume|Retry/ }).count()) === 0, 'buttons');
  const serious = await axe(page);
  check(serious.length === 0, serious.join('\n'));
  check(page.errors.length === 0, page.errors.join('\n'));
  const elsewhere = page.asked.map((one) => one.url()).filter((one) => !one.startsWith(url));
  check(elsewhere.length === 0, `asked elsewhere: ${elsewhere}`);
  await page.context().close();
}

async function openAs(who, shown) {
  const page = await openAt(url);
  await page.getByRole('link', { name: 'Use a token' }).click();
  await page.getByLabel('Token').fill(shown);
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByText(`${who} · operator`).waitFor();
  return page;
}

/** Who may act on one kind sees the buttons of that kind alone. */
async function rights() {
  const acts = /Pause|Resume|Retry|Approve/;
  for (const [who, shown, may, mayNot] of [
    ['of-skyhooks', OF_SKYHOOKS, 'slow', 'fleet-default/app'],
    ['of-space', OF_SPACE, 'fleet-default/app', 'slow'],
  ]) {
    const page = await openAs(who, shown);
    await page.goto(`${url}/#/rollout/${encodeURIComponent(may)}`);
    await page.getByRole('button', { name: 'Pause…' }).waitFor();
    await page.goto(`${url}/#/rollout/${encodeURIComponent(mayNot)}`);
    await page.locator('.causes').waitFor();
    const found = await page.getByRole('button', { name: acts }).allInnerTexts();
    check(found.length === 0, `${who} sees ${found} of ${mayNot}`);
    await page.context().close();
  }
}

async function acting() {
  const page = await openAs('admin', token);
  await page.goto(`${url}/#/rollout/slow`);
  await page.getByRole('button', { name: 'Pause…' }).click();
  check((await page.getByRole('button', { name: 'Resume…' }).count()) === 0, 'two buttons');
  await confirm(page, 'Pause', /Nothing more of slow starts/);
  await page.getByRole('button', { name: 'Resume…' }).waitFor();
  await eventually('the engine knows', async () => (await fleet()).paused.length === 1);
  await picture(page, 'operator-rollout');
  await page.getByRole('button', { name: 'Resume…' }).click();
  await confirm(page, 'Resume', /may start/);
  await page.getByRole('button', { name: 'Pause…' }).waitFor();
  await page.goto(`${url}/#/journal`);
  await page.getByText('pause slow').first().waitFor();
  check(page.errors.length === 0, page.errors.join('\n'));
  await page.context().close();
}

async function clusters() {
  const page = await openAs('admin', token);
  await page.goto(`${url}/#/target/c0003`);
  await page.getByText('partition rest', { exact: true }).first().waitFor();
  check((await page.getByRole('button', { name: /Retry|Skip/ }).count()) === 0, 'buttons');
  await page.goto(`${url}/#/rollout/fleet-default%2Fapp`);
  await page.getByText('unavailable in this partition').first().waitFor();
  check((await page.getByRole('button', { name: /Roll back|More/ }).count()) === 0, 'buttons');
  await picture(page, 'operator-bundle');
  await page.getByRole('button', { name: 'Approve…' }).click();
  await confirm(page, 'Approve', /The partition rest of fleet-default\/app is approved/);
  await page.getByText('100%').waitFor();
  await page.getByText('complete').waitFor();
  check(page.errors.length === 0, page.errors.join('\n'));
  await page.context().close();
}

async function narrowDark() {
  const page = await openAt(url, {
    viewport: { width: 390, height: 844 },
    colorScheme: 'dark',
  });
  await page.goto(`${url}/#/rollout/slow`);
  await page.getByText('planned to end at').waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  check(wide <= 390, `it is ${wide} wide`);
  await picture(page, 'operator-narrow-dark');
  await page.context().close();
}

process.exit(
  await tell({
    'nodes, compartments and reasons, without a token': looking,
    'buttons of the kinds that one may act on, and of no other': rights,
    'a token, a pause and its end': acting,
    'a Bundle, its partitions, and an approval': clusters,
    'narrow and dark': narrowDark,
  }),
);
