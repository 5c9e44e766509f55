// SPDX-License-Identifier: Apache-2.0
// One change: what happened, what will, how much of each limit it uses, what holds it, what failed,
// and what can be done about it. The future is the server's plan: the same engine in virtual time.
import {
  all,
  get,
  mayAct,
  seg,
  type Group,
  type Job,
  type JournalEntry,
  type Page,
  type Plan,
  type Target,
} from '../api';
import { countStates, STATE_WORDS } from '../fleet';
import { fleet, recent } from '../live';
import { ActButton, type Act } from '../parts/confirm';
import { Chart } from '../parts/lazychart';
import { Away, Badge, Bar, Empty, Legend, Name, percent, Said, Time } from '../parts/small';
import { Timeline } from '../parts/timeline';
import { go, href } from '../router';
import { barsOf, inFlightSteps, planStart, shifted, slotSteps, type Steps } from '../series';
import { useFresh } from '../use';
import { released } from '../words';
import { versionsOf } from './rollouts';

const JOBS_MOST = 3000;
const JOURNAL_MOST = 5000;
const CAUSES_OF = 300;
const CAUSES_SHOWN = 6;

interface Range {
  from: number;
  now: number;
  to: number;
}

/** From the first job of the versions that are on their way to the end of the plan. */
function rangeOf(jobs: readonly Job[], planned: Plan['jobs'], wanted: readonly string[]): Range {
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

async function slotEntries(): Promise<JournalEntry[]> {
  const { sequence } = await get<{ sequence: number }>('info');
  const entries = await all<JournalEntry>(
    `journal?after=${Math.max(0, sequence - JOURNAL_MOST)}`,
    JOURNAL_MOST,
  );
  return entries.filter((one) => one.entry['decision'] === 'slot');
}

function Limits({
  change,
  plan,
  range,
  jobs,
}: {
  change: string;
  plan: Plan | null;
  range: Range;
  jobs: readonly Job[];
}) {
  const groups = useFresh('groups', () => get<Page<Group>>('groups?limit=1000'), 1000).value;
  const past = useFresh('slots', slotEntries, 60_000).value ?? [];
  const seen = past[past.length - 1]?.sequence ?? 0;
  const entries = [...past, ...recent.value.filter((one) => one.sequence > seen)];
  const planned = plan?.changes.find((one) => one.name === change)?.groups ?? [];
  const start = plan ? planStart(plan) : range.now;
  const own: Steps = plan ? shifted(countPlanned(plan, change), start) : [];
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
          <Chart title="Targets in flight" past={inFlightSteps(jobs)} future={own} {...range} />
        </figure>
        {planned
          .filter((one) => one.kind === 'concurrency')
          .map((one) => {
            const group = groups?.items.find((other) => other.name === one.name);
            return (
              <figure key={one.name}>
                <figcaption>
                  <Name text={one.name} />{' '}
                  <span class="dim">
                    {group ? `${group.holders} of ${group.limit} now` : `limit ${one.limit ?? ''}`}
                  </span>
                </figcaption>
                <Chart
                  title={one.name.slice(0, 80)}
                  past={slotSteps(entries, one.name)}
                  future={shifted(one.inUse ?? [], start)}
                  {...(one.limit === undefined ? {} : { limit: one.limit })}
                  {...range}
                />
              </figure>
            );
          })}
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
                <Name text={cause.scope} />
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
            {cause.act === 'approve' && version ? (
              <ActButton go act={approve(change, version, cause.targets.length)} />
            ) : null}
          </li>
        ))}
      </ul>
    </section>
  );
}

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

const SHOWN = 3; // acts that have a button of their own

function Actions({ change, version, before }: { change: string; version: string; before: string }) {
  const body = { deployment: change };
  const acts: Act[] = [
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
  return (
    <span class="buttons">
      {acts.slice(0, SHOWN).map((act) => (
        <ActButton key={act.act} act={act} />
      ))}
      {mayAct() ? (
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

export function RolloutView({ change }: { change: string }) {
  const f = fleet.value;
  const jobs = useFresh(
    `jobs/${change}`,
    () => all<Job>(`jobs?deployment=${seg(change)}`, JOBS_MOST),
    1000,
  ).value;
  const plan = useFresh('plan', () => get<Plan>('plan?until=7d'), 3000);
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
  const ahead = (plan.value?.jobs ?? []).filter((job) => job.deployment === change);
  const range = rangeOf(jobs ?? [], ahead, counts.done < counts.all ? wanted : current.slice(0, 1));
  const bars = barsOf(jobs ?? [], ahead, range.now).filter(
    (bar) => bar.to >= range.from && bar.from <= range.to,
  );
  const end = ahead.reduce((a, job) => Math.max(a, job.end ?? 0), 0);
  const endAt = plan.value ? (planStart(plan.value) + end) * 1000 : 0;
  const complete = counts.done + counts.excluded === counts.all;
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
          />
        </div>
        <p class="big">
          <b>{percent(counts.done, counts.all)}</b> done{' '}
          <span class="dim">
            ·{' '}
            <Name
              text={
                version && current[0] && version !== current[0]
                  ? `${current[0]} → ${version}`
                  : version || current[0] || 'no version'
              }
            />
            {' · '}
            {complete ? (
              'complete'
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
        <Legend counts={counts} />
        {plan.value &&
        plan.value.outcome !== 'complete' &&
        plan.value.waiting.some((one) => one.change === change) ? (
          <p class="note">
            The plan ends {plan.value.outcome}: <Name text={plan.value.reason} />
          </p>
        ) : null}
      </header>
      <div class="groups">
        <Failures change={change} />
        <Causes change={change} version={version} />
        <section class="card">
          <h2>
            Timeline <span class="dim">each bar a job; dashed what is planned</span>
          </h2>
          {bars.length ? (
            <Timeline bars={bars} {...range} open={(bar) => go(['target', bar.target])} />
          ) : (
            <Empty>Nothing ran yet, and nothing is planned.</Empty>
          )}
        </section>
        <Limits change={change} plan={plan.value} range={range} jobs={jobs ?? []} />
        <Jobs jobs={jobs ?? []} />
        <p class="dim">
          <Name text={plan.value?.assumes ? `The plan assumes ${plan.value.assumes}.` : ''} />
        </p>
      </div>
    </>
  );
}

function Jobs({ jobs }: { jobs: readonly Job[] }) {
  if (jobs.length === 0) return null;
  return (
    <section class="card">
      <h2>Latest jobs</h2>
      <JobTable jobs={jobs.slice(0, 12)} />
    </section>
  );
}

export function JobTable({ jobs }: { jobs: readonly Job[] }) {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">job</th>
          <th scope="col">target</th>
          <th scope="col">version</th>
          <th scope="col">state</th>
          <th scope="col">began</th>
          <th scope="col">ended</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.number}>
            <td>
              <a href={href(['target', job.resource], { job: String(job.number) })}>{job.number}</a>
            </td>
            <td>
              <Name text={job.resource} />{' '}
              <span class="dim">
                <Name text={job.environment} />
              </span>
            </td>
            <td>
              <Name text={job.version} />
            </td>
            <td>
              <span class={/^succe/.test(job.state) || !job.endedAt ? '' : 'bad'}>{job.state}</span>
              {job.reason ? (
                <span class="dim">
                  {' '}
                  <Name text={job.reason} />
                </span>
              ) : null}
            </td>
            <td>{job.startedAt ? <Time at={job.startedAt} /> : STATE_WORDS.waiting}</td>
            <td>{job.endedAt ? <Time at={job.endedAt} /> : ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
