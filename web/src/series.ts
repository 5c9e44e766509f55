// SPDX-License-Identifier: Apache-2.0
// Counts over time as steps: what was measured, what is planned, and both on one axis. Pure.
import type { Job, JournalEntry, Plan, PlanJob } from './api';

/** [seconds since 1970, count from then on]. */
export type Steps = [number, number][];

/** How many intervals are open at a time; an end of null is open still. */
export function openCount(spans: readonly { from: number; to: number | null }[]): Steps {
  const moves: [number, number][] = [];
  for (const { from, to } of spans) {
    moves.push([from, 1]);
    if (to !== null) moves.push([to, -1]);
  }
  moves.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const steps: Steps = [];
  let count = 0;
  for (const [at, by] of moves) {
    count += by;
    const before = steps[steps.length - 1];
    if (before && before[0] === at) before[1] = count;
    else steps.push([at, count]);
  }
  return steps;
}

const when = (time: string | undefined): number | null => (time ? Date.parse(time) / 1000 : null);

/** The identity of a Bundle's version is two long hashes: the beginnings tell them apart. */
export const shownVersion = (version: string): string =>
  version.replace(/^(s-[0-9a-f]{8})[0-9a-f]*:([0-9a-f]{8})[0-9a-f]*$/, '$1:$2');

/** A compartment that is nobody's in particular has a name that no person gave it. */
export const shownGroup = (name: string, none = ''): string =>
  name === '__default__' ? 'default' : name || none;

/** The same in a scope such as "compartment __default__". */
export const shownScope = (scope: string): string =>
  scope.replace(/^compartment __default__(?= |$)/, 'compartment default');

export interface Bar {
  lane: string;
  group: string;
  target: string;
  version: string;
  role: string;
  from: number;
  to: number;
  /** Where what happened ends and what is planned begins; behind `to` when nothing is planned. */
  planned: number;
  state: 'done' | 'failed' | 'inFlight' | 'waiting';
  job: number;
}

const laneOf = (job: { environment: string; group?: string }): string =>
  job.environment || shownGroup(job.group ?? '');

/** The stretches in which a count is not zero. */
function busy(steps: readonly [number, number][], end: number): [number, number][] {
  const spans: [number, number][] = [];
  let from: number | null = null;
  for (const [at, count] of steps) {
    if (count > 0 && from === null) from = at;
    if (count === 0 && from !== null) {
      spans.push([from, at]);
      from = null;
    }
  }
  if (from !== null) spans.push([from, end]);
  return spans;
}

/** What a plan says of one change, as jobs: on nodes, each member of each batch is one; of a Bundle
 *  only when each partition is worked on is known. */
export function plannedOf(plan: Plan | null, change: string): PlanJob[] {
  if (!plan) return [];
  const own = plan.changes.find((one) => one.name === change);
  if (!own || own.kind === 'Deployment')
    return plan.jobs.filter((job) => job.deployment === change);
  const start = planStart(plan);
  if (own.kind === 'Bundle')
    return own.groups.flatMap((group) =>
      busy(group.inUse ?? [], plan.seconds).map(([from, to]) => ({
        deployment: change,
        resource: group.name,
        environment: '',
        version: '',
        group: group.name,
        role: 'partition',
        start: from,
        end: to,
        startAt: new Date((start + from) * 1000).toISOString(),
        status: 'successful',
      })),
    );
  return own.groups.flatMap((group) =>
    (group.batches ?? []).flatMap((batch) =>
      batch.targets.map((resource) => ({
        deployment: change,
        resource,
        environment: '',
        version: '',
        group: group.name,
        role: 'member',
        start: batch.start,
        end: batch.end ?? plan.seconds,
        startAt: new Date((start + batch.start) * 1000).toISOString(),
        status: batch.failed ? 'failed' : 'successful',
      })),
    ),
  );
}

/** Several counts over time, added up. */
export function added(all: readonly Steps[]): Steps {
  const times = [...new Set(all.flatMap((steps) => steps.map(([at]) => at)))].sort((a, b) => a - b);
  return times.map((at) => [at, all.reduce((sum, steps) => sum + valueAt(steps, at), 0)]);
}

/** A moment at which a group opened a batch. */
export interface Mark {
  lane: string;
  at: number;
  text: string;
  planned: boolean;
}

export function marksOf(
  entries: readonly JournalEntry[],
  plan: Plan | null,
  change: string,
): Mark[] {
  const marks: Mark[] = [];
  for (const { at, entry } of entries)
    if (entry['decision'] === 'batch' && entry['change'] === change)
      marks.push({
        lane: shownGroup(String(entry['group'] ?? '')),
        at: Date.parse(at) / 1000,
        text: `batch ${Number(entry['number'] ?? 0)}`,
        planned: false,
      });
  const start = plan ? planStart(plan) : 0;
  for (const group of plan?.changes.find((one) => one.name === change)?.groups ?? [])
    for (const batch of group.batches ?? [])
      marks.push({
        lane: shownGroup(group.name),
        at: start + batch.start,
        text: `batch ${batch.number}`,
        planned: true,
      });
  return marks;
}

function barOf(job: Job, now: number): Bar | null {
  const from = when(job.startedAt);
  if (from === null) return null;
  const ended = when(job.endedAt);
  const failed = ended !== null && !/^succe/.test(job.state);
  return {
    lane: laneOf(job),
    group: job.group ?? '',
    target: job.resource,
    version: job.version,
    role: job.role,
    from,
    to: ended ?? now,
    planned: Infinity,
    state: ended === null ? 'inFlight' : failed ? 'failed' : 'done',
    job: job.number,
  };
}

/** Jobs that ran and run, and those that the plan says will. */
export function barsOf(jobs: readonly Job[], planned: readonly PlanJob[], now: number): Bar[] {
  const bars: Bar[] = [];
  const running = new Map<string, Bar>();
  for (const job of jobs) {
    const bar = barOf(job, now);
    if (!bar) continue;
    bars.push(bar);
    if (bar.state === 'inFlight') running.set(`${job.environment}/${bar.target}`, bar);
  }
  for (const job of planned) {
    const from = Date.parse(job.startAt) / 1000;
    const to = from + ((job.end ?? job.start) - job.start);
    const under = running.get(`${job.environment}/${job.resource}`);
    if (from <= now) {
      // It has begun since the plan was made, or is over: what happened is shown instead.
      if (under) {
        under.planned = now;
        under.to = Math.max(to, now);
      }
      continue;
    }
    bars.push({
      lane: laneOf(job),
      group: job.group,
      target: job.resource,
      version: job.version,
      role: job.role,
      from,
      to,
      planned: from,
      state: job.status === 'failed' ? 'failed' : 'waiting',
      job: 0,
    });
  }
  return bars;
}

/** Puts bars that overlap under each other: the row of each, and how many rows there are. */
export function packed(bars: readonly Bar[]): { rows: number[]; count: number } {
  const order = bars
    .map((_, i) => i)
    .sort((a, b) => {
      const x = bars[a] as Bar;
      const y = bars[b] as Bar;
      return x.from - y.from || x.to - y.to;
    });
  const rows = new Array<number>(bars.length).fill(0);
  const free: number[] = [];
  for (const i of order) {
    const bar = bars[i] as Bar;
    let row = free.findIndex((end) => end <= bar.from);
    if (row < 0) row = free.push(0) - 1;
    free[row] = bar.to;
    rows[i] = row;
  }
  return { rows, count: free.length };
}

/** How many slots of a rule were taken, as the journal says. */
export function slotSteps(entries: readonly JournalEntry[], rule: string): Steps {
  const steps: Steps = [];
  for (const { at, entry } of entries) {
    if (entry['decision'] !== 'slot' || entry['group'] !== rule) continue;
    const time = Date.parse(at) / 1000;
    const size = Number(entry['size'] ?? 0);
    const before = steps[steps.length - 1];
    if (before && before[0] === time) before[1] = size;
    else steps.push([time, size]);
  }
  return steps;
}

/** Distinct targets in flight, of jobs as they were. */
export function inFlightSteps(jobs: readonly Job[]): Steps {
  return openCount(
    jobs.flatMap((job) => {
      const from = when(job.startedAt);
      return from === null ? [] : [{ from, to: when(job.endedAt) }];
    }),
  );
}

/** How many targets a partition counts as unavailable: each from the start of a job until one has
 *  succeeded there. What failed counts until then, and within a version group nothing ends between
 *  two of its jobs. */
export function unavailableSteps(jobs: readonly Job[]): Steps {
  const byTarget = new Map<string, Job[]>();
  for (const job of jobs) {
    if (!job.startedAt) continue;
    const key = `${job.environment}/${job.resource}`;
    const list = byTarget.get(key);
    if (list) list.push(job);
    else byTarget.set(key, [job]);
  }
  return openCount([...byTarget.values()].flatMap(unavailableSpans));
}

function unavailableSpans(jobs: Job[]): { from: number; to: number | null }[] {
  const spans: { from: number; to: number | null }[] = [];
  const order = jobs.sort((a, b) => (when(a.startedAt) ?? 0) - (when(b.startedAt) ?? 0));
  let open: { from: number; to: number | null } | null = null;
  order.forEach((job, i) => {
    const from = when(job.startedAt) ?? 0;
    if (open && open.to !== null && open.to < from) open = null;
    if (!open) spans.push((open = { from, to: null }));
    const end = /^succe/.test(job.state) ? when(job.endedAt) : null;
    const last = order.slice(0, i).every((one) => one.endedAt && when(one.endedAt)! <= (end ?? 0));
    const next = order[i + 1];
    const together = job.group && next?.group === job.group;
    open.to = end !== null && last && !together ? end : null;
  });
  return spans;
}

/** Steps that are seconds from a start, as times. */
export const shifted = (steps: readonly [number, number][], start: number): Steps =>
  steps.map(([at, count]) => [start + at, count]);

/** When a plan begins, in seconds since 1970. */
export function planStart(plan: Plan): number {
  return Date.parse(plan.startAt) / 1000;
}

export const valueAt = (steps: Steps, at: number): number => {
  let value = 0;
  for (const [time, count] of steps) {
    if (time > at) break;
    value = count;
  }
  return value;
};

/** Columns for a chart: times, measured until now, planned from now on. */
export function columns(
  past: Steps,
  future: Steps,
  range: { from: number; now: number; to: number },
): [number[], (number | null)[], (number | null)[]] {
  const inside = past.filter(([at]) => at >= range.from && at <= range.now);
  const ahead = future.filter(([at]) => at > range.now && at <= range.to);
  const ending = valueAt(past, range.now);
  const times = [
    range.from,
    ...inside.map(([at]) => at),
    range.now,
    ...ahead.map(([at]) => at),
    range.to,
  ];
  const measured: (number | null)[] = [
    valueAt(past, range.from),
    ...inside.map(([, n]) => n),
    ending,
  ];
  const planned: (number | null)[] = new Array<null>(inside.length + 1).fill(null);
  planned.push(ending);
  for (const [, count] of ahead) planned.push(count);
  planned.push(future.length > 0 ? (future[future.length - 1] as [number, number])[1] : ending);
  while (measured.length < times.length) measured.push(null);
  return [times, measured, planned];
}
