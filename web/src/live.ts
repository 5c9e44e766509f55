// SPDX-License-Identifier: Apache-2.0
// What is known of the fleet now, and how fresh that is: a snapshot, asked for again when the
// journal has grown, and the journal as a stream that resumes where it was cut. While the stream is
// down everything counts as stale.
import { batch, signal } from '@preact/signals';

import { get, info, request, Refusal, type Info, type JournalEntry } from './api';
import { readFleet, type Fleet, type FleetAnswer } from './fleet';
import { eventsOf } from './sse';

export type Connection = 'connecting' | 'live' | 'lost' | 'resting';

const SILENCE_MS = 20_000; // the server says something every 15 seconds
const RETRY_MS = [300, 1000, 2000, 5000];
const REFRESH_MS = 250; // at most so often,
const REFRESH_SHARE = 8; // and at most so large a part of the time: 1/8
const HIDDEN_MS = 30_000; // a page that nobody sees gives its connection back
const RECENT = 500;

export const connection = signal<Connection>('connecting');
export const fleet = signal<Fleet | null>(null);
/** When what is shown was true, by this machine's clock. */
export const freshAt = signal(0);
/** Why the server has no answer, in its own words; an operator may not be the one that works. */
export const trouble = signal('');
export const recent = signal<readonly JournalEntry[]>([]);
/** Grows with every entry that may change documents, such as policies. */
export const documentsChanged = signal(0);
/** Grows with every refresh that brought something: views that ask for more ask again. */
export const beat = signal(0);

let last = 0;
let dirty = false;
let asking = false;
let costMs = 0;
let askedAt = 0;
let heardAt = 0;
let stopping: AbortController | null = null;
let arrived: JournalEntry[] = [];
let timer = 0;

async function refresh(): Promise<void> {
  asking = true;
  dirty = false;
  askedAt = performance.now();
  try {
    const answer = await get<FleetAnswer>('fleet');
    const before = performance.now();
    fleet.value = readFleet(answer, fleet.peek());
    last = Math.max(last, answer.sequence);
    freshAt.value = Date.now();
    beat.value++;
    costMs = performance.now() - before + (before - askedAt) / 4;
    trouble.value = '';
  } catch (error) {
    dirty = true; // the stream notices what is wrong with the connection
    trouble.value = error instanceof Refusal ? error.message : '';
  }
  asking = false;
  if (dirty) schedule();
}

function schedule(): void {
  if (asking || timer) return;
  const wait = Math.max(REFRESH_MS, costMs * REFRESH_SHARE) - (performance.now() - askedAt);
  timer = window.setTimeout(
    () => {
      timer = 0;
      void refresh();
    },
    Math.max(0, wait),
  );
}

function touchesDocuments(e: JournalEntry): boolean {
  return /^(document|target)(Gone)?$/.test(String(e.entry['fact']));
}

function deliver(): void {
  const entries = arrived;
  arrived = [];
  batch(() => {
    recent.value = [...recent.peek(), ...entries].slice(-RECENT);
    if (entries.some(touchesDocuments)) documentsChanged.value++;
  });
}

function take(entry: JournalEntry): void {
  last = entry.sequence;
  if (arrived.length === 0) requestAnimationFrame(deliver);
  arrived.push(entry);
  dirty = true;
  schedule();
}

async function listen(): Promise<void> {
  stopping = new AbortController();
  const answer = await request('events', {
    headers: { 'Last-Event-ID': String(last) },
    signal: stopping.signal,
  });
  if (!answer.body) throw new Error('no stream');
  heardAt = Date.now();
  connection.value = 'live';
  dirty = true;
  schedule();
  for await (const event of eventsOf(answer.body, () => (heardAt = Date.now())))
    if (event.data) take(JSON.parse(event.data) as JournalEntry);
}

const pause = (ms: number): Promise<void> =>
  new Promise((done) => {
    const id = window.setTimeout(done, ms);
    window.addEventListener('online', () => (clearTimeout(id), done()), { once: true });
  });

const seen = (): Promise<void> =>
  new Promise((done) => {
    const look = (): void => {
      if (document.hidden) return;
      document.removeEventListener('visibilitychange', look);
      done();
    };
    document.addEventListener('visibilitychange', look);
  });

function watch(): void {
  window.setInterval(() => {
    if (connection.peek() === 'live' && Date.now() - heardAt > SILENCE_MS) stopping?.abort();
  }, 1000);
  let hiding = 0;
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiding);
    if (document.hidden)
      hiding = window.setTimeout(() => {
        if (connection.peek() === 'live') connection.value = 'resting';
        stopping?.abort();
      }, HIDDEN_MS);
  });
}

/** Runs until the session ends. */
async function live(first: Promise<void>): Promise<void> {
  watch();
  let failures = 0;
  await first;
  last = Math.max(last, info.peek()?.sequence ?? 0);
  while (info.peek()) {
    const began = Date.now();
    try {
      await listen();
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return;
    }
    if (connection.peek() === 'resting' && document.hidden) {
      await seen();
      continue;
    }
    connection.value = 'lost';
    failures = Date.now() - began > 5000 ? 0 : failures + 1;
    await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 5000);
  }
}

export async function begin(): Promise<void> {
  const first = refresh(); // beside: the first picture waits for both
  info.value = await get<Info>('info');
  void live(first);
}
