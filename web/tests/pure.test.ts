// SPDX-License-Identifier: Apache-2.0
// The parts that are pure: streams cut anywhere, cells, steps, words, times.
import { describe, expect, it } from 'vitest';

import type { Job, Plan, PlanJob, Reason } from '../src/api';
import { cellsOf, countStates, grouped, readFleet, stateOf, STATES } from '../src/fleet';
import {
  added,
  barsOf,
  columns,
  marksOf,
  openCount,
  packed,
  plannedOf,
  shownVersion,
  slotSteps,
  unavailableSteps,
  valueAt,
  type Bar,
} from '../src/series';
import { EventReader } from '../src/sse';
import { span, utc } from '../src/time';
import { entryWords, plain, released, ruleWords, seconds } from '../src/words';

const answer = {
  sequence: 7,
  states: [...STATES],
  changes: ['app', 'web'],
  paused: [],
  environments: ['prod'],
  targets: ['h10', 'h9'],
  versions: ['', '1.0'],
  groups: [''],
  // change, environment, target, state, wanted, current, group
  cells: [0, 0, 0, 5, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 2, 1, 0, 0],
};

describe('streams', () => {
  it('are the same wherever they are cut', () => {
    const text = 'id: 1\ndata: {"a":1}\n\n: comment\n\nid: 2\r\ndata: x\r\ndata: y\r\n\r\n';
    const whole = new EventReader().feed(text);
    expect(whole).toEqual([
      { id: '1', data: '{"a":1}' },
      { id: '2', data: 'x\ny' },
    ]);
    for (let cut = 0; cut <= text.length; cut++) {
      const reader = new EventReader();
      const parts = [...reader.feed(text.slice(0, cut)), ...reader.feed(text.slice(cut))];
      expect(parts).toEqual(whole);
    }
  });
});

describe('the fleet', () => {
  const fleet = readFleet(answer, null);
  it('is counted by change', () => {
    expect(countStates(fleet, -1)).toMatchObject({ all: 3, done: 1, waiting: 1, failed: 1 });
    expect(countStates(fleet, 1)).toMatchObject({ all: 1, failed: 1 });
  });
  it('has a cell for each target, by the number in its name, in its loudest state', () => {
    const cells = cellsOf(fleet, -1);
    expect(cells.map((cell) => fleet.targets[cell.target])).toEqual(['h9', 'h10']);
    expect(cells.map((cell) => STATES[stateOf(fleet, cell)])).toEqual(['waiting', 'failed']);
    expect(grouped(cells, () => 'x')).toHaveLength(1);
  });
  it('knows whether its names are those of before', () => {
    expect(readFleet(answer, fleet).sameNames).toBe(true);
    expect(readFleet({ ...answer, targets: ['a', 'b'] }, fleet).sameNames).toBe(false);
    expect(fleet.sameNames).toBe(false);
  });
});

describe('steps', () => {
  it('count what is open', () => {
    const steps = openCount([
      { from: 1, to: 4 },
      { from: 2, to: null },
      { from: 4, to: 5 },
    ]);
    expect(steps).toEqual([
      [1, 1],
      [2, 2],
      [4, 2],
      [5, 1],
    ]);
    expect([0, 1, 3, 9].map((at) => valueAt(steps, at))).toEqual([0, 1, 2, 1]);
  });
  it('go on from what was measured to what is planned', () => {
    const [times, measured, planned] = columns(
      [
        [1, 2],
        [3, 4],
      ],
      [
        [0, 9],
        [6, 1],
      ],
      { from: 0, now: 5, to: 8 },
    );
    expect(times).toEqual([0, 1, 3, 5, 6, 8]);
    expect(measured).toEqual([0, 2, 4, 4, null, null]);
    expect(planned).toEqual([null, null, null, 4, 1, 1]);
  });
  it('of slots come from the journal', () => {
    const entry = (at: number, group: string, size: number) => ({
      sequence: at,
      at: new Date(at * 1000).toISOString(),
      step: 1,
      kind: 'decision' as const,
      who: '',
      entry: { decision: 'slot', group, size },
    });
    expect(
      slotSteps([entry(1, 'a', 1), entry(1, 'a', 2), entry(2, 'b', 5), entry(3, 'a', 1)], 'a'),
    ).toEqual([
      [1, 2],
      [3, 1],
    ]);
  });
});

describe('the timeline', () => {
  const job = (resource: string, from: number, to?: number): Job => ({
    number: from,
    deployment: 'd',
    environment: 'e',
    resource,
    version: '1',
    role: 'member',
    state: to ? 'succeeded' : 'running',
    attempt: 1,
    startedAt: new Date(from * 1000).toISOString(),
    ...(to ? { endedAt: new Date(to * 1000).toISOString() } : {}),
  });
  const plan = (resource: string, from: number, seconds: number): PlanJob => ({
    deployment: 'd',
    environment: 'e',
    resource,
    version: '1',
    group: '',
    role: 'member',
    start: 0,
    end: seconds,
    startAt: new Date(from * 1000).toISOString(),
    status: 'successful',
  });
  it('shows what runs once, solid until now and planned from now on', () => {
    const bars = barsOf(
      [job('a', 90), job('b', 80, 95)],
      [plan('a', 92, 20), plan('c', 120, 5), plan('b', 85, 5)],
      100,
    );
    expect(bars.map((bar) => [bar.target, bar.from, bar.planned, bar.to, bar.state])).toEqual([
      ['a', 90, 100, 112, 'inFlight'],
      ['b', 80, Infinity, 95, 'done'],
      ['c', 120, 120, 125, 'waiting'],
    ]);
  });
  it('puts what overlaps into rows', () => {
    const bar = (from: number, to: number): Bar => ({
      lane: '',
      target: '',
      version: '',
      role: '',
      from,
      to,
      planned: 0,
      state: 'done',
      job: 0,
    });
    expect(packed([bar(0, 5), bar(1, 2), bar(2, 9), bar(5, 6)])).toEqual({
      rows: [0, 1, 1, 0],
      count: 2,
    });
  });
});

describe('words', () => {
  it('say what rules say', () => {
    expect(
      ruleWords({
        id: 'x',
        resourceConcurrency: { limitType: 'percentage', limitValue: 20, groupSelector: 'true' },
      }),
    ).toEqual({
      kind: 'resourceConcurrency',
      words: 'At most 20% of the targets where true at once.',
    });
    expect(ruleWords({ anyApproval: {} }).words).toBe('1 person must approve the version first.');
    expect(ruleWords({ unheardOf: { a: 1 } }).words).toBe('{"a":1}');
  });
  it('tell the journal', () => {
    const of = (kind: 'fact' | 'decision' | 'audit', entry: Record<string, unknown>) =>
      entryWords({ sequence: 1, at: '', step: 1, kind, who: '', entry });
    expect(
      of('decision', {
        decision: 'start',
        change: 'web',
        version: '2',
        target: 'h',
        environment: 'prod',
      }),
    ).toBe('start web 2 on h in prod');
    expect(of('fact', { fact: 'act', act: 'pause', change: 'web', reason: 'lunch' })).toBe(
      'pause web because "lunch"',
    );
    expect(of('audit', { audit: 'tokenCreated', token: 't' })).toBe('token created token t');
    expect(of('decision', { decision: 'new', target: 'h' })).toBe('new h');
  });
  it('say what releases', () => {
    const by = (act: string): string =>
      released({ releasedBy: { act, of: [] } } as unknown as Reason);
    expect(by('approve')).toBe('when somebody approves');
    expect(by('magic')).toBe('by magic');
  });
  it('give durations', () => {
    expect([45, 90, 120, 7200, 172800].map(seconds)).toEqual(['45s', '90s', '2m', '2h', '2d']);
    expect([400, 190_000, 3_600_000, 90_000_000].map(span)).toEqual([
      '0s',
      '3m 10s',
      '1h',
      '1d 1h',
    ]);
    expect(utc(0)).toBe('1970-01-01T00:00:00Z');
  });
});

describe('a plan of nodes', () => {
  const batch = { number: 2, start: 60, end: null, size: 1, targets: ['n2'], failed: false };
  const plan = {
    seconds: 120,
    startAt: '2026-01-01T00:00:00Z',
    jobs: [],
    changes: [
      {
        name: 'sk',
        kind: 'Skyhook',
        groups: [{ name: '__default__', kind: 'compartment', matched: 2, batches: [batch] }],
      },
    ],
  } as unknown as Plan;
  const start = Date.parse(plan.startAt) / 1000;
  it('is jobs of the members of its batches', () => {
    expect(plannedOf(plan, 'sk')).toMatchObject([
      { resource: 'n2', group: '__default__', start: 60, end: 120 },
    ]);
    expect(plannedOf(plan, 'other')).toEqual([]);
    expect(plannedOf(null, 'sk')).toEqual([]);
    const bars = barsOf([], plannedOf(plan, 'sk'), start);
    expect(bars).toMatchObject([{ lane: 'default', from: start + 60, planned: start + 60 }]);
  });
  it('has marks where batches open, past and future', () => {
    const entry = {
      sequence: 1,
      at: '2025-12-31T23:59:00Z',
      step: 0,
      kind: 'decision' as const,
      who: '',
      entry: { decision: 'batch', change: 'sk', group: '__default__', number: 1 },
    };
    expect(marksOf([entry], plan, 'sk')).toEqual([
      { lane: 'default', at: start - 60, text: 'batch 1', planned: false },
      { lane: 'default', at: start + 60, text: 'batch 2', planned: true },
    ]);
  });
  it('adds up what its groups use', () => {
    expect(
      added([
        [
          [0, 1],
          [10, 0],
        ],
        [
          [5, 2],
          [10, 1],
        ],
      ]),
    ).toEqual([
      [0, 1],
      [5, 3],
      [10, 1],
    ]);
  });
});

describe('a cell of several changes', () => {
  it('is in the group that somebody named', () => {
    const fleet = readFleet({ ...answer, groups: ['__default__', 'gpu'], cells: [
      0, 0, 0, 5, 1, 1, 0, 1, 0, 0, 2, 1, 0, 1,
    ] }, null);
    expect(cellsOf(fleet, -1).map((cell) => fleet.groups[cell.group])).toEqual(['gpu']);
    expect(cellsOf(fleet, 0).map((cell) => fleet.groups[cell.group])).toEqual(['__default__']);
  });
});

describe('partitions', () => {
  type Part = Partial<Job>;
  const job = (resource: string, from: number, to: number | null, more: Part = {}): Job => ({
    number: 1,
    deployment: 'app',
    environment: 'prod',
    resource,
    version: '1',
    role: 'member',
    state: to === null ? 'running' : 'succeeded',
    attempt: 1,
    startedAt: new Date(from * 1000).toISOString(),
    ...(to === null ? {} : { endedAt: new Date(to * 1000).toISOString() }),
    ...more,
  });
  it('count what failed as unavailable until it has succeeded', () => {
    const failed = { state: 'failed' };
    expect(unavailableSteps([job('a', 0, 5), job('b', 2, 4)])).toEqual([
      [0, 1],
      [2, 2],
      [4, 1],
      [5, 0],
    ]);
    expect(unavailableSteps([job('a', 8, 9), job('a', 0, 5, failed)])).toEqual([
      [0, 1],
      [9, 0],
    ]);
    expect(unavailableSteps([job('a', 0, 5, failed)])).toEqual([[0, 1]]);
    expect(unavailableSteps([job('a', 0, 5), job('a', 8, null)])).toEqual([
      [0, 1],
      [5, 0],
      [8, 1],
    ]);
  });
  it('count a target of a version group once, from its first job to its last', () => {
    const group = { group: 'g1' };
    const jobs = [job('a', 0, 2, group), job('a', 3, 5, group), job('a', 3, 6, group)];
    expect(unavailableSteps(jobs)).toEqual([
      [0, 1],
      [6, 0],
    ]);
  });
  it('of a Bundle are planned as stretches', () => {
    const plan = {
      seconds: 90,
      startAt: '2026-01-01T00:00:00Z',
      jobs: [],
      changes: [
        {
          name: 's/app',
          kind: 'Bundle',
          groups: [
            { name: 'canary', kind: 'partition', matched: 2, inUse: [[0, 1], [30, 0], [60, 2]] },
          ],
        },
      ],
    } as unknown as Plan;
    expect(plannedOf(plan, 's/app').map((one) => [one.group, one.start, one.end])).toEqual([
      ['canary', 0, 30],
      ['canary', 60, 90],
    ]);
  });
  it('of a Bundle have versions that are short enough to read', () => {
    const id = `s-${'0123456789abcdef'.repeat(4)}:${'fedcba9876543210'.repeat(4)}`;
    expect(shownVersion(id)).toBe('s-01234567:fedcba98');
    expect(shownVersion('1.2.3')).toBe('1.2.3');
  });
});

describe('texts of others', () => {
  it('are as they are written, whatever their direction', () => {
    expect(plain('\u202etxt.exe')).toBe('\\u202etxt.exe');
    expect(plain('a\u2066b\u0007c\u009fd')).toBe('a\\u2066b\\u0007c\\u009fd');
    const letters = '\u05e9\u05dc\u05d5\u05dd <b>\n\t\u0627';
    expect(plain(letters)).toBe(letters);
  });
});
