// SPDX-License-Identifier: Apache-2.0
// What stories share: a real server in a folder of its own, a browser, and TAP.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const require = createRequire(`${process.env.WEB}/package.json`);
const { chromium } = require('playwright-core');
export const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const BROWSER_FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
export const API = 'drover.dev/v1alpha1';
const SLOW_MS = 20_000;

export class Server {
  constructor(...words) {
    this.words = words;
    this.folder = mkdtempSync(join(tmpdir(), 'drover-browser-'));
    this.port = 0;
  }

  /** Until it says where it listens and, if it does, its link. */
  async start(until = /listens on/) {
    const words = [
      'serve',
      '--data',
      this.folder,
      '--listen',
      `127.0.0.1:${this.port}`,
      '--unsafe-no-sync',
      ...this.words,
    ];
    this.process = spawn(process.env.DROVER, words, { stdio: ['ignore', 'pipe', 'ignore'] });
    this.said = '';
    this.process.stdout.on('data', (part) => (this.said += part));
    await eventually('the server starts', () => until.test(this.said));
    this.port = Number(/listens on \S+:(\d+)/.exec(this.said)[1]);
    this.url = `http://127.0.0.1:${this.port}`;
    this.token = readFileSync(join(this.folder, 'admin-token'), 'utf8').trim();
    return this;
  }

  async stop(signal = 'SIGTERM') {
    if (this.process.exitCode !== null) return;
    const over = new Promise((done) => this.process.once('exit', done));
    this.process.kill(signal);
    await over;
  }

  async end() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async call(method, path, body, token = this.token) {
    const answer = await fetch(`${this.url}/api/v1/${path}`, {
      method,
      headers: { Authorization: `Bearer ${token}` },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text.slice(0, 500)}`);
    return text ? JSON.parse(text) : null;
  }

  get = (path) => this.call('GET', path);
  post = (path, body) => this.call('POST', path, body);
  apply = (documents) => this.post('apply', documents.map((one) => JSON.stringify(one)).join('\n'));

  async link() {
    const { path } = await this.post('links');
    return this.url + path;
  }
}

export const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export async function eventually(what, condition, ms = SLOW_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`never: ${what}`);
    await pause(30);
  }
}

export function check(good, what) {
  if (!good) throw new Error(what);
}

let browser;
async function newPage(errors, settings) {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM, args: BROWSER_FLAGS });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...settings });
  context.setDefaultTimeout(SLOW_MS);
  const page = await context.newPage();
  page.asked = [];
  page.errors = errors;
  page.on('request', (request) => page.asked.push(request));
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (line) => {
    // A connection that is cut on purpose is no error of the page's.
    if (line.type() === 'error' && !/ERR_|Failed to load resource/.test(line.text()))
      errors.push(line.text());
  });
  page.on('dialog', (dialog) => {
    errors.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return page;
}

/** late: what matches it is answered a second later, the first time it is asked for. */
export async function open(
  server,
  { how = 'link', path = '', errors = [], late = '', ...settings } = {},
) {
  const page = await newPage(errors, settings);
  const delay = async (route) => {
    await pause(1000);
    await route.continue();
  };
  if (late) await page.route(late, delay, { times: 1 });
  if (how === 'link') await page.goto(await server.link());
  else {
    await page.goto(server.url);
    await page.getByLabel('Or with a token').fill(how);
    await page.getByRole('button', { name: 'Open' }).click();
  }
  if (how === 'link' || how === server.token)
    await page.getByText('live', { exact: true }).waitFor();
  if (path) await page.goto(`${server.url}/${path}`);
  return page;
}

/** A page that needs no token to be looked at. */
export async function openAt(url, settings = {}) {
  const page = await newPage([], settings);
  await page.goto(url);
  await page.getByText('live', { exact: true }).waitFor();
  return page;
}

export async function confirm(page, label, says) {
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  const text = await dialog.innerText();
  check(says.test(text), `the confirmation says: ${text}`);
  await dialog.getByRole('button', { name: label, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

export const picture = (page, name) =>
  page.screenshot({ path: join(process.env.PICTURES, `${name}.png`) });

/** What axe finds that is serious, one line each. */
export async function axe(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations
      .filter((one) => one.impact === 'serious' || one.impact === 'critical')
      .map(
        (one) =>
          `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))}`,
      );
  });
  return found;
}

/** Runs stories one after the other; prints TAP; the exit status. */
export async function tell(stories) {
  const wanted = process.argv[2] ?? '';
  const chosen = Object.entries(stories).filter(([name]) => name.includes(wanted));
  let number = 0;
  let failed = 0;
  for (const [name, story] of chosen) {
    number++;
    const began = Date.now();
    try {
      await story();
      // What nobody looks at any more would only take time from the next story.
      for (const context of browser?.contexts() ?? []) await context.close();
      console.log(`ok ${number} - ${name} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    } catch (error) {
      failed++;
      console.log(`not ok ${number} - ${name}`);
      console.log(
        String(error.stack ?? error)
          .split('\n')
          .map((line) => `# ${line}`)
          .join('\n'),
      );
    }
  }
  console.log(`1..${number}`);
  await browser?.close();
  return failed ? 1 : 0;
}

// ---- documents ----

export const host = (name, labels = {}) => ({
  apiVersion: API,
  kind: 'Resource',
  metadata: { name, labels },
  spec: { kind: 'host' },
});
export const environment = (name) => ({
  apiVersion: API,
  kind: 'Environment',
  metadata: { name },
  spec: { resourceSelector: `resource.metadata["env"] == "${name}"` },
});
export const deployment = (name, job) => ({
  apiVersion: API,
  kind: 'Deployment',
  metadata: { name },
  spec: { resourceSelector: 'resource.kind == "host"', job },
});
export const policy = (name, selector, ...rules) => ({
  apiVersion: API,
  kind: 'RolloutPolicy',
  metadata: { name },
  spec: { selector, rules },
});
export const hosts = (count, env, labels = {}) =>
  Array.from({ length: count }, (_, i) =>
    host(`${env}-${String(i + 1).padStart(2, '0')}`, { env, rack: `r${(i % 4) + 1}`, ...labels }),
  );
