// SPDX-License-Identifier: Apache-2.0
// One change: what happened, what will, how much of each limit it uses, what holds it, what failed,
// and what can be done about it. The future is the server's plan: the same engine in virtual time.
import { useComputed } from '@preact/signals';
import { useMemo } from 'preact/hooks';

import {
  all,
  get,
  inOperator,
  isBundle,
  mayDo,
  seg,
  type Group,
  type Job,
  type JournalEntry,
  type Page,
  type Plan,
  type PlanGroup,
  type PlanJob,
  type Reason,
  type Target,
  type Window,
} from '../api';
import { at, CHANGE, countStates, ENVIRONMENT, GROUP, TARGET } from '../fleet';
import { fleet, recent } from '../live';
import { ActButton, type Act } from '../parts/confirm';
import { JobTable } from '../parts/jobs';
import { Chart } from '../parts/lazychart';
import { Away, Badge, Bar, Empty, Legend, Name, now, percent, Said, Time } from '../parts/small';
import { Timeline } from '../parts/timeline';
import { go, href, route, setQuery } from '../router';
import {
  added,
  barsOf,
  inFlightSteps,
  marksOf,
  planStart,
  plannedOf,
  shifted,
  shownGroup,
  shownScope,
  shownVersion,
  slotSteps,
  unavailableSteps,
  type Bar as TimelineBar,
  type Steps,
} from '../series';
import { useFresh } from '../use';
import { released } from '../words';
import { Freezes, useFreezes, versionsOf } from './rollouts';

const JOBS_MOST = 3000;
const JOURNAL_MOST = 5000;
const CAUSES_OF = 300;
const CAUSES_SHOWN = 6;
const LIMITS_SHOWN = 24;

interface Range {
  from: number;
  now: number;
  to: number;
}

/** From the first job of the versions that are on their way to the end of the plan. */
function rangeOf(
  jobs: readonly Job[],
  planned: readonly PlanJob[],
  wanted: readonly string[],
): Range {
  const now = Date.now() / 1000;
  const starts = jobs
    .filter((job) => job.startedAt && (!job.endedAt || wanted.includes(job.version)))
    .map((job) => Date.parse(job.startedAt ?? '') / 1000);
  const first = starts.reduce((a, b) => Math.min(a, b), now - 10);
  const ends = planned.map((job) => Date.parse(job.startAt) / 1000 + ((job.end ?? 0) - job.start));
  const last = ends.reduce((a, b) => Math.max(a, b), now);
  return {
    from: first - (last - first) * 0.02,
    now,
    to: last + Math.max(5, (last - first) * 0.05),
  };
}

/** Of the journal: what slots and batches did. */
async function limitEntries(): Promise<JournalEntry[]> {
  const { sequence } = await get<{ sequence: number }>('info');
  const entries = await all<JournalEntry>(
    `journal?after=${Math.max(0, sequence - JOURNAL_MOST)}`,
    JOURNAL_MOST,
  );
  return entries.filter((one) => /^(slot|batch)$/.test(String(one.entry['decision'])));
}

function useLimitEntries(): JournalEntry[] {
  const past = useFresh('slots', limitEntries, 60_000).value ?? [];
  const seen = past[past.length - 1]?.sequence ?? 0;
  // Not asked for with every entry that arrives: who calls this is drawn often enough.
  return [...past, ...recent.peek().filter((one) => one.sequence > seen)];
}

const sameGroup = (a: PlanGroup, b: PlanGroup): boolean => a.name === b.name && a.kind === b.kind;

/** Jobs of targets that share a compartment or partition: of every change that the plan says has
 *  it, since a policy may pace several as one. */
function jobsOfGroup(jobs: readonly Job[], plan: Plan, group: PlanGroup): Job[] {
  const f = fleet.peek();
  if (!f) return [];
  const changes = new Set(
    plan.changes.filter((one) => one.groups.some((g) => sameGroup(g, group))).map((c) => c.name),
  );
  const members = new Set<string>();
  for (let row = 0; row < f.count; row++) {
    const change = f.changes[at(f, row, CHANGE)] ?? '';
    if (f.groups[at(f, row, GROUP)] === group.name && changes.has(change))
      members.add(
        `${change}/${f.environments[at(f, row, ENVIRONMENT)]}/${f.targets[at(f, row, TARGET)]}`,
      );
  }
  return jobs.filter((job) =>
    members.has(`${job.deployment}/${job.environment}/${job.resource}`),
  );
}

function LimitChart({
  group,
  now,
  past,
  start,
  range,
}: {
  group: PlanGroup;
  now: Group | undefined;
  past: Steps;
  start: number;
  range: Range;
}) {
  const limit = group.ceiling ?? group.limit;
  return (
    <figure>
      <figcaption>
        <Name text={shownGroup(group.name)} />{' '}
        <span class="dim">
          {group.kind === 'concurrency'
            ? ''
            : group.kind === 'partition'
              ? 'unavailable in this partition · '
              : `${group.kind} · `}
          {now ? `${now.holders} of ${now.limit} now` : `limit ${limit ?? ''}`}
          {group.kind === 'partition' && limit !== undefined && past.some(([, n]) => n > limit)
            ? ' · first deployments may exceed it'
            : ''}
        </span>
      </figcaption>
      <Chart
        title={shownGroup(group.name).slice(0, 80)}
        past={past}
        future={shifted(group.inUse ?? [], start)}
        {...(limit === undefined ? {} : { limit })}
        {...range}
      />
    </figure>
  );
}

function Limits({
  change,
  plan,
  range,
  jobs,
  entries,
}: {
  change: string;
  plan: Plan | null;
  range: Range;
  jobs: readonly Job[];
  entries: readonly JournalEntry[];
}) {
  const groups = useFresh('groups', () => get<Page<Group>>('groups?limit=1000'), 1000).value;
  const everywhere = useFresh('jobs', () => all<Job>('jobs', JOBS_MOST), 2000).value ?? [];
  const own = plan?.changes.find((one) => one.name === change);
  const start = plan ? planStart(plan) : range.now;
  const paced = (own?.groups ?? []).filter((one) => one.kind !== 'concurrency');
  const future: Steps = !plan
    ? []
    : own?.kind === 'Deployment'
      ? shifted(countPlanned(plan, change), start)
      : shifted(added(paced.map((one) => one.inUse ?? [])), start);
  return (
    <section class="card">
      <h2>
        Blast radius <span class="dim">measured, then as planned (dashed), against each limit</span>
      </h2>
      <div class="charts">
        <figure>
          <figcaption>
            Targets in flight <span class="dim">for this change</span>
          </figcaption>
          <Chart title="Targets in flight" past={inFlightSteps(jobs)} future={future} {...range} />
        </figure>
        {(own?.groups ?? []).slice(0, LIMITS_SHOWN).map((one) => (
          <LimitChart
            key={`${one.kind}/${one.name}`}
            group={one}
            now={groups?.items.find(
              (other) =>
                other.kind === one.kind &&
                other.name === one.name &&
                (!inOperator() || other.change === change),
            )}
            past={
              one.kind === 'concurrency' || !plan
                ? slotSteps(entries, one.name)
                : (one.kind === 'partition' ? unavailableSteps : inFlightSteps)(
                    inOperator()
                      ? jobs.filter((job) => job.group === one.name)
                      : jobsOfGroup(everywhere, plan, one),
                  )
            }
            start={start}
            range={range}
          />
        ))}
      </div>
    </section>
  );
}

/** [second, targets in flight] of one change in a plan. */
function countPlanned(plan: Plan, change: string): [number, number][] {
  const moves: [number, number][] = [];
  for (const job of plan.jobs) {
    if (job.deployment !== change) continue;
    moves.push([job.start, 1], [job.end ?? plan.seconds, -1]);
  }
  moves.sort((a, b) => a[0] - b[0]);
  const steps: [number, number][] = [[0, 0]];
  let count = 0;
  for (const [at, by] of moves) {
    count += by;
    const before = steps[steps.length - 1];
    if (before && before[0] === at) before[1] = count;
    else steps.push([at, count]);
  }
  return steps;
}

interface Cause {
  key: string;
  rule: string;
  scope: string;
  message: string;
  nextAt: string | null;
  release: string;
  act: string;
  /** Of an approval that a partition waits for: its name. */
  partition: string;
  targets: Target[];
}

/** Why targets wait, the commonest cause first; numbers in messages are each target's own. */
export function causesOf(targets: readonly Target[]): Cause[] {
  const causes = new Map<string, Cause>();
  for (const target of targets)
    for (const reason of target.reasons) {
      const scope = reason.scope.split(target.target).join('*');
      const key = `${reason.rule}\n${scope}`;
      let cause = causes.get(key);
      if (!cause) {
        cause = {
          key,
          rule: reason.rule,
          scope,
          message: reason.message,
          nextAt: reason.nextAt,
          release: released(reason),
          act: reason.releasedBy.act,
          partition: partitionOf(reason),
          targets: [],
        };
        causes.set(key, cause);
      }
      cause.targets.push(target);
      if (reason.nextAt && (!cause.nextAt || reason.nextAt < cause.nextAt)) {
        cause.nextAt = reason.nextAt;
        cause.message = reason.message;
      }
    }
  return [...causes.values()].sort((a, b) => b.targets.length - a.targets.length);
}

function Causes({ change, version }: { change: string; version: string }) {
  const waiting = useFresh(
    `waiting/${change}`,
    () => get<Page<Target>>(`targets?deployment=${seg(change)}&state=waiting&limit=${CAUSES_OF}`),
    1500,
  ).value;
  if (!waiting || waiting.items.length === 0) return null;
  const causes = causesOf(waiting.items);
  return (
    <section class="card">
      <h2>
        What holds it{' '}
        <span class="dim">
          {waiting.continue
            ? `of the first ${CAUSES_OF} that wait`
            : `${waiting.items.length} wait`}
        </span>
      </h2>
      <ul class="causes">
        {causes.slice(0, CAUSES_SHOWN).map((cause) => (
          <li key={cause.key}>
            <span class="count">{cause.targets.length}</span>
            <div>
              <b>{cause.rule}</b>{' '}
              <span class="dim">
                <Name text={shownScope(cause.scope)} />
              </span>
              <p>
                <Said text={cause.message} />
              </p>
              <p class="dim">
                Released {cause.release}
                {cause.nextAt ? (
                  <>
                    , next <Away at={cause.nextAt} />
                  </>
                ) : null}
                . For example{' '}
                {cause.targets.slice(0, 3).map((target, i) => (
                  <span key={target.target}>
                    {i ? ', ' : ''}
                    <a href={href(['target', target.target])}>
                      <Name text={target.target} />
                    </a>
                  </span>
                ))}
                .
              </p>
            </div>
            {cause.act === 'approve' && cause.partition ? (
              <ActButton go act={approvePartition(change, cause.partition)} />
            ) : cause.act === 'approve' && version && !isBundle(change) ? (
              <ActButton go act={approve(change, version, cause.targets.length)} />
            ) : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Whom an approval is for: a partition, or (empty) a version. */
export const partitionOf = (reason: Reason): string =>
  reason.releasedBy.act === 'approve' && /^partition /.test(reason.scope)
    ? (reason.releasedBy.of[0] ?? '')
    : '';

export const approvePartition = (change: string, partition: string): Act => ({
  act: 'approve',
  label: 'Approve',
  body: { deployment: change, partition },
  says:
    `The partition ${partition} of ${change} is approved, for the rollout that is under way. ` +
    'Its targets start when it is their turn, within every limit.',
});

const approve = (change: string, version: string, count: number): Act => ({
  act: 'approve',
  label: 'Approve',
  body: { deployment: change, version },
  says:
    `Your approval of ${change} ${version} is counted. ${count} targets wait for approvals; ` +
    'those that nothing else holds start, within every limit.',
});

function Failures({ change }: { change: string }) {
  const failed = useFresh(
    `failed/${change}`,
    () => get<Page<Target>>(`targets?deployment=${seg(change)}&state=failed&limit=100`),
    1500,
  ).value;
  if (!failed || failed.items.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Failed{' '}
        <span class="dim">
          {failed.items.length}
          {failed.continue ? ' and more' : ''}
        </span>
        <ActButton
          act={{
            act: 'retry',
            label: 'Retry all',
            body: { deployment: change },
            says: `Everything of ${change} that failed is tried again, within every limit.`,
          }}
        />
      </h2>
      <table class="rows">
        <thead class="unseen">
          <tr>
            <th>target</th>
            <th>why</th>
            <th>act</th>
          </tr>
        </thead>
        <tbody>
          {failed.items.map((one) => (
            <tr key={`${one.environment}/${one.target}`}>
              <td>
                <Badge state={one.state} />{' '}
                <a href={href(['target', one.target])}>
                  <Name text={one.target} />
                </a>
              </td>
              <td>
                <Said text={one.summary} />
              </td>
              <td class="act">
                <ActButton
                  act={{
                    act: 'retry',
                    label: 'Retry',
                    body: {
                      deployment: change,
                      environment: one.environment,
                      resource: one.target,
                    },
                    says: `${change} is tried again on ${one.target}, within every limit.`,
                  }}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const SHOWN = 2; // acts that have a button of their own

interface ActionsProps {
  change: string;
  version: string;
  before: string;
  paused: boolean;
  frozen: boolean;
}

/** Those that make sense now: nothing is paused that is, and nothing resumed that is not. */
function Actions({ change, version, before, paused, frozen }: ActionsProps) {
  const body = { deployment: change };
  const every: Act[] = [
    {
      act: 'pause',
      label: 'Pause',
      body,
      reason: true,
      says: `Nothing more of ${change} starts. What runs goes on to its end.`,
    },
    {
      act: 'resume',
      label: 'Resume',
      body,
      says: `A pause or halt of ${change} ends; what waits may start, within every limit.`,
    },
    {
      act: 'rollback',
      label: 'Roll back',
      body,
      reason: true,
      says:
        `${change} goes back to the version before${before ? ` (such as ${before})` : ''} on ` +
        'every target, within every limit.',
    },
    {
      act: 'reject',
      label: 'Reject',
      body: { ...body, version },
      says: `Your approval of ${change} ${version} is taken back. What has started goes on.`,
    },
    {
      act: 'skip',
      label: 'Skip version',
      body: { ...body, version },
      reason: true,
      says:
        `${change} ${version} is left out on every target that does not run it yet. ` +
        'The next version comes as usual.',
    },
    {
      act: 'freeze',
      label: 'Freeze',
      reason: true,
      body: {
        name: `freeze-${change}`.slice(0, 60),
        selector: `deployment.name == ${JSON.stringify(change)}`,
      },
      says: `Nothing of ${change} starts until the freeze is ended, not even retries.`,
    },
    {
      act: 'thaw',
      label: 'End freeze',
      body: { name: `freeze-${change}`.slice(0, 60) },
      says: `What the freeze of ${change} held back may start again, within every limit.`,
    },
  ];
  const idle = [paused ? 'pause' : 'resume', frozen ? 'freeze' : 'thaw'];
  const acts = every.filter((act) => mayDo(act.act, change) && !idle.includes(act.act));
  return (
    <span class="buttons">
      {acts.slice(0, SHOWN).map((act) => (
        <ActButton key={act.act} act={act} />
      ))}
      {acts.length > SHOWN ? (
        <details class="more">
          <summary>More</summary>
          <div>
            {acts
              .slice(SHOWN)
              .filter((act) => act.body['version'] !== '')
              .map((act) => (
                <ActButton key={act.act} act={act} />
              ))}
          </div>
        </details>
      ) : null}
    </span>
  );
}

const WINDOW_GRID = 600; // seconds: so seldom they are asked for again
const LANES = ['', 'group', 'version'] as const;
const LANE_WORDS = {
  '': 'environment',
  group: 'version group or batch',
  version: 'version',
};

interface LanesProps {
  change: string;
  plan: Plan | null;
  bars: readonly TimelineBar[];
  range: Range;
  entries: readonly JournalEntry[];
}

/** The timeline, with its windows. */
function Lanes({ change, plan, bars, range, entries }: LanesProps) {
  const from = Math.floor(range.from / WINDOW_GRID) * WINDOW_GRID;
  const to = Math.ceil(range.to / WINDOW_GRID) * WINDOW_GRID;
  const windows = useFresh(
    `windows/${change}/${from}/${to}`,
    async () => {
      if (inOperator()) return [];
      const path = `windows?deployment=${seg(change)}&from=${from}&to=${to}`;
      return (await get<Page<Window>>(path)).items;
    },
    30_000,
  ).value;
  const by = (route.value.query.get('lanes') ?? '') as (typeof LANES)[number];
  const laned = !by
    ? bars
    : bars.map((bar) => ({
        ...bar,
        lane: by === 'group' ? bar.group || 'in no group' : bar.version || 'no version',
      }));
  return (
    <section class="card">
      <h2>
        Timeline{' '}
        <span class="dim">
          each bar a{' '}
          {isBundle(change)
            ? 'cluster that is not ready yet'
            : inOperator()
              ? 'node that is worked on'
              : 'job'}
          ; dashed what is planned
          {windows?.length ? '; shaded while a window is closed' : ''}
        </span>
        {inOperator() ? null : (
          <label class="lanes">
            Lanes by{' '}
            <select value={by} onChange={(e) => setQuery({ lanes: e.currentTarget.value })}>
              {LANES.map((one) => (
                <option key={one} value={one}>
                  {LANE_WORDS[one]}
                </option>
              ))}
            </select>
          </label>
        )}
      </h2>
      {laned.length || windows?.length ? (
        <Timeline
          bars={laned}
          marks={marksOf(entries, plan, change)}
          windows={(windows ?? []).map((one) => ({
            name: one.policy,
            open: one.open.map(
              ([a, b]) => [Date.parse(a) / 1000, Date.parse(b) / 1000] as [number, number],
            ),
          }))}
          {...range}
          open={(bar) => {
            if (bar.role !== 'partition') go(['target', bar.target]);
          }}
        />
      ) : (
        <Empty>Nothing ran yet, and nothing is planned.</Empty>
      )}
    </section>
  );
}

interface CourseProps {
  change: string;
  plan: Plan | null;
  jobs: readonly Job[];
  ahead: readonly PlanJob[];
  wanted: readonly string[];
}

/** What happened and what will: the timeline, and the limits over the same time. */
function Course({ change, plan, jobs, ahead, wanted }: CourseProps) {
  const entries = useLimitEntries();
  const range = rangeOf(jobs, ahead, wanted);
  const bars = barsOf(jobs, ahead, range.now).filter(
    (bar) => bar.to >= range.from && bar.from <= range.to,
  );
  return (
    <>
      <Lanes change={change} plan={plan} bars={bars} range={range} entries={entries} />
      <Limits change={change} plan={plan} range={range} jobs={jobs} entries={entries} />
    </>
  );
}

const MANY = 2000; // bars: then they are not drawn for every job
const STALE_MS = 10_000;

/** The same, drawn when something of it changed or time went on, and not with everything else. */
function SteadyCourse({ change, plan, jobs, ahead, wanted }: CourseProps) {
  const many = jobs.length + ahead.length > MANY;
  const tick = useComputed(() => Math.floor(now.value / STALE_MS)).value;
  const drawn = many ? null : jobs;
  return useMemo(
    () => <Course change={change} plan={plan} jobs={jobs} ahead={ahead} wanted={wanted} />,
    [change, plan, drawn, tick, wanted.join()],
  );
}

const NONE: readonly Job[] = [];

export function RolloutView({ change }: { change: string }) {
  const f = fleet.value;
  const jobs = useFresh(
    `jobs/${change}`,
    () => all<Job>(`jobs?deployment=${seg(change)}`, JOBS_MOST),
    1000,
  ).value;
  const plan = useFresh('plan', () => get<Plan>('plan?until=7d'), 3000);
  const freezes = useFreezes();
  const ahead = useMemo(() => plannedOf(plan.value, change), [plan.value, change]);
  if (!f) return <Empty>Reading the fleet…</Empty>;
  const index = f.changes.indexOf(change);
  if (index < 0)
    return (
      <Empty>
        There is no change named “<Name text={change} />
        ”.
      </Empty>
    );
  const counts = countStates(f, index);
  const { wanted, current } = versionsOf(f, index);
  const version = wanted[0] ?? '';
  const paused = f.paused.includes(index);
  const frozenAs = `freeze-${change}`.slice(0, 60);
  const end = ahead.reduce((a, job) => Math.max(a, job.end ?? 0), 0);
  const endAt = plan.value ? (planStart(plan.value) + end) * 1000 : 0;
  const complete = counts.done + counts.excluded === counts.all;
  // A plan is of everything: what it leaves undone may be another change's.
  const stays =
    plan.value?.outcome === 'complete'
      ? undefined
      : plan.value?.waiting.find((one) => one.change === change);
  return (
    <>
      <header class="head">
        <div class="row">
          <h1>
            <a class="up" href={href(['rollouts'])}>
              Rollouts
            </a>{' '}
            <Name text={change} />
          </h1>
          <Actions
            change={change}
            version={version}
            before={current.find((v) => v !== version) ?? ''}
            paused={paused}
            frozen={freezes.some((one) => one.name === frozenAs)}
          />
        </div>
        <p class="big">
          <b>{percent(counts.done, counts.all)}</b> done{' '}
          {paused ? <span class="badge paused">paused</span> : null}
          <span class="dim">
            {' '}
            ·{' '}
            <Name
              text={
                version && current[0] && version !== current[0]
                  ? `${shownVersion(current[0])} → ${shownVersion(version)}`
                  : shownVersion(version || current[0] || 'no version')
              }
            />
            {' · '}
            {complete ? (
              counts.done > 0 ? (
                'complete'
              ) : (
                'nothing to do'
              )
            ) : plan.problem ? (
              `no plan: ${plan.problem}`
            ) : !plan.value ? (
              'planning…'
            ) : ahead.length === 0 ? (
              'nothing more will start by itself'
            ) : (
              <>
                planned to end at <Time at={endAt} /> (<Away at={new Date(endAt).toISOString()} />)
              </>
            )}
          </span>
        </p>
        <Bar counts={counts} label={change.slice(0, 80)} />
        <Legend counts={counts} change={change} />
        {plan.value && stays ? (
          <p class="note">
            The plan ends {plan.value.outcome}:{' '}
            <Name text={stays.reasons[0]?.message ?? plan.value.reason} />
          </p>
        ) : null}
      </header>
      <div class="groups">
        <Failures change={change} />
        <Causes change={change} version={version} />
        <Freezes
          list={freezes.filter((one) => !one.selector || one.name === frozenAs)}
        />
        <SteadyCourse
          change={change}
          plan={plan.value}
          jobs={jobs ?? NONE}
          ahead={ahead}
          wanted={counts.done < counts.all ? wanted : current.slice(0, 1)}
        />
        <Jobs change={change} jobs={jobs ?? NONE} />
        <p class="dim">
          <Name text={plan.value?.assumes ? `The plan assumes ${plan.value.assumes}.` : ''} />
        </p>
      </div>
    </>
  );
}

function Jobs({ change, jobs }: { change: string; jobs: readonly Job[] }) {
  if (jobs.length === 0) return null;
  const what = isBundle(change) ? 'clusters' : inOperator() ? 'nodes' : 'jobs';
  return (
    <section class="card">
      <h2>Latest {what}</h2>
      <JobTable jobs={jobs.slice(0, 12)} />
    </section>
  );
}
