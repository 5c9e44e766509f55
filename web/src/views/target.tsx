// SPDX-License-Identifier: Apache-2.0
// One target: each change on it with every cause why it is not moving, its jobs, and a job's log as
// it grows.
import { useEffect, useRef, useState } from 'preact/hooks';

import {
  all,
  get,
  inOperator,
  isBundle,
  request,
  seg,
  type Document,
  type Job,
  type Package,
  type Page,
  type Target,
} from '../api';
import { ActButton } from '../parts/confirm';
import { JobTable } from '../parts/jobs';
import { Away, Badge, Empty, Name, Said } from '../parts/small';
import { href, route } from '../router';
import { shownScope, shownVersion } from '../series';
import { useFresh } from '../use';
import { released } from '../words';
import { approvePartition, partitionOf } from './rollout';

const LOG_BYTES_SHOWN = 200_000;
const HOLDERS_SHOWN = 12;
const LOUD = ['failed', 'blocked', 'inFlight', 'waiting', 'excluded', 'done'];

export function Reasons({ target }: { target: Target }) {
  return (
    <ol class="reasons">
      {target.reasons.map((reason, i) => (
        <li key={i}>
          <p>
            <b>{reason.rule}</b>{' '}
            <span class="dim">
              <Name text={shownScope(reason.scope)} />
            </span>
          </p>
          <p>
            <Said text={reason.message} />
          </p>
          {reason.holders.length > 0 ? (
            <p>
              <span class="dim">Held by </span>
              {reason.holders.slice(0, HOLDERS_SHOWN).map((holder, n) => (
                <span key={holder}>
                  {n ? ', ' : ''}
                  <a href={href(['target', holder])}>
                    <Name text={holder} />
                  </a>
                </span>
              ))}
              {reason.holders.length > HOLDERS_SHOWN
                ? ` and ${reason.holders.length - HOLDERS_SHOWN} more`
                : ''}
            </p>
          ) : null}
          <p class="dim">
            Released {released(reason)}
            {reason.nextAt ? (
              <>
                ; asked again <Away at={reason.nextAt} />
              </>
            ) : null}
            {reason.releasedBy.of.length > 0 && reason.releasedBy.act !== 'complete' ? (
              <>
                : <Name text={reason.releasedBy.of.slice(0, 6).join(', ')} />
              </>
            ) : null}
          </p>
        </li>
      ))}
    </ol>
  );
}

/** How far the packages of a Skyhook are on a node. */
function Packages({ list }: { list: readonly Package[] }) {
  if (list.length === 0) return null;
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">package</th>
          <th scope="col">stage</th>
          <th scope="col">state</th>
          <th scope="col">attempt</th>
        </tr>
      </thead>
      <tbody>
        {list.map((one) => (
          <tr key={`${one.name}:${one.version}`}>
            <td>
              <Name text={`${one.name} ${one.version}`} />
            </td>
            <td>{one.stage}</td>
            <td>
              <span class={one.state === 'erroring' ? 'bad' : ''}>{one.state}</span>
            </td>
            <td>{one.attempt}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Placement({ one }: { one: Target }) {
  const body = { deployment: one.change, environment: one.environment, resource: one.target };
  const approval = one.reasons.find((reason) => reason.releasedBy.act === 'approve');
  const partition = approval ? partitionOf(approval) : '';
  return (
    <section class="card placement">
      <h2>
        <Badge state={one.state} />
        <a href={href(['rollout', one.change])}>
          <Name text={one.change} />
        </a>
        <span class="dim">
          {one.environment ? (
            <>
              in <Name text={one.environment} />
            </>
          ) : null}
          {one.wanted && one.wanted !== one.current ? (
            <>
              {' '}
              ·{' '}
              <Name
                text={`${shownVersion(one.current) || 'new'} → ${shownVersion(one.wanted)}`}
              />
            </>
          ) : one.current ? (
            <>
              {' '}
              · runs <Name text={shownVersion(one.current)} />
            </>
          ) : null}
        </span>
        <span class="buttons">
          {one.state === 'failed' ? (
            <ActButton
              go
              act={{
                act: 'retry',
                label: 'Retry',
                body,
                says: `${one.change} is tried again on ${one.target}, within every limit.`,
              }}
            />
          ) : null}
          {partition ? (
            <ActButton go act={approvePartition(one.change, partition)} />
          ) : approval ? (
            <ActButton
              go
              act={{
                act: 'approve',
                label: 'Approve',
                body: { deployment: one.change, version: one.wanted },
                says: `Your approval of ${one.change} ${one.wanted} is counted, for every target.`,
              }}
            />
          ) : null}
          {one.state !== 'done' && one.state !== 'excluded' ? (
            <ActButton
              act={{
                act: 'skip',
                label: 'Skip',
                body: { ...body, version: one.wanted },
                reason: true,
                says:
                  `${one.change} ${one.wanted} is left out on ${one.target}. The next version ` +
                  'comes as usual.',
              }}
            />
          ) : null}
        </span>
      </h2>
      {one.state === 'done' ? null : (
        <p>
          <Said text={one.summary} />
        </p>
      )}
      <Reasons target={one} />
      <Packages list={one.packages ?? []} />
    </section>
  );
}

function Done({ list }: { list: readonly Target[] }) {
  if (list.length === 0) return null;
  return (
    <section class="card placement">
      <h2>
        <Badge state="done" />
      </h2>
      <p class="labels">
        {list.map((one) => (
          <span class="label" key={`${one.change}/${one.environment}`}>
            <a href={href(['rollout', one.change])}>
              <Name text={one.change} />
            </a>{' '}
            <Name text={shownVersion(one.current)} />
          </span>
        ))}
      </p>
    </section>
  );
}

/** Follows a log until its job ends; keeps the last part of a long one. */
function Log({ job }: { job: Job }) {
  const [text, setText] = useState('');
  const [state, setState] = useState('');
  const box = useRef<HTMLPreElement>(null);
  const running = !job.endedAt;
  useEffect(() => {
    const stop = new AbortController();
    const read = async (): Promise<void> => {
      setText('');
      setState(running ? 'following' : '');
      const answer = await request(`jobs/${job.number}/log${running ? '?follow=true' : ''}`, {
        signal: stop.signal,
      });
      const reader = answer.body?.getReader();
      const decoder = new TextDecoder();
      for (;;) {
        const part = await reader?.read();
        if (!part || part.done) break;
        const more = decoder.decode(part.value, { stream: true });
        setText((before) => (before + more).slice(-LOG_BYTES_SHOWN));
      }
      setState(running ? 'ended' : '');
    };
    read().catch(() => stop.signal.aborted || setState('the log cannot be read'));
    return () => stop.abort();
  }, [job.number, running]);
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [text]);
  return (
    <section class="card">
      <h2>
        Log of job {job.number}{' '}
        <span class="dim">
          <Name text={`${job.deployment} ${job.version}`} /> {state}
        </span>
      </h2>
      <pre class="log" ref={box} tabIndex={0} dir="auto">
        {text || (running ? '' : 'It wrote nothing.')}
      </pre>
    </section>
  );
}

function Labels({ name }: { name: string }) {
  const doc = useFresh(
    `resource/${name}`,
    () => get<Document>(`resources/${seg(name)}`),
    5000,
  ).value;
  if (!doc) return null;
  const labels = Object.entries(doc.metadata.labels ?? {});
  return (
    <p class="labels">
      {labels.slice(0, 30).map(([key, value]) => (
        <span class="label" key={key}>
          <Name text={key} />=<Name text={value} />
        </span>
      ))}
    </p>
  );
}

export function TargetView({ name }: { name: string }) {
  const targets = useFresh(
    `target/${name}`,
    () => get<Page<Target>>(`targets?resource=${seg(name)}&limit=200`),
    700,
  );
  const jobs = useFresh(
    `jobs-of/${name}`,
    () => all<Job>(`jobs?resource=${seg(name)}`, 30),
    900,
  ).value;
  const chosen = Number(route.value.query.get('job') ?? 0);
  const shown =
    jobs?.find((job) => job.number === chosen) ?? jobs?.find((job) => !job.endedAt) ?? jobs?.[0];
  if (!targets.value) return <Empty>{targets.problem || 'Asking…'}</Empty>;
  const list = [...targets.value.items].sort(
    (a, b) => LOUD.indexOf(a.state) - LOUD.indexOf(b.state) || (a.change < b.change ? -1 : 1),
  );
  return (
    <>
      <header class="head">
        <h1>
          <a class="up" href={href(['fleet'])}>
            Fleet
          </a>{' '}
          <Name text={name} />
        </h1>
        <Labels name={name} />
      </header>
      <div class="groups">
        {list
          .filter((one) => one.state !== 'done')
          .map((one) => (
            <Placement key={`${one.change}/${one.environment}`} one={one} />
          ))}
        <Done list={list.filter((one) => one.state === 'done')} />
        {list.length === 0 ? (
          <Empty>
            Nothing is to run on “<Name text={name} />
            ”.
          </Empty>
        ) : null}
        {shown && !inOperator() ? <Log job={shown} /> : null}
        {shown && inOperator() && !isBundle(shown.deployment) ? (
          <p class="dim">
            What a package wrote:{' '}
            <code>
              kubectl skyhook package logs PACKAGE --skyhook <Name text={shown.deployment} />{' '}
              --node{' '}
              <Name text={name} />
            </code>
          </p>
        ) : null}
        {jobs && jobs.length > 0 ? (
          <section class="card">
            <h2>History</h2>
            <JobTable jobs={jobs} ofTarget />
          </section>
        ) : null}
      </div>
    </>
  );
}
