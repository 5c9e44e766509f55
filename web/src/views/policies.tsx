// SPDX-License-Identifier: Apache-2.0
// Policies in words, who they match, and what-if: both plans side by side before anything is saved.
import { useState } from 'preact/hooks';

import { all, get, mayAct, post, Refusal, request, seg, type Document, type Plan } from '../api';
import { cellsOf, type FleetAnswer, readFleet } from '../fleet';
import { Chart } from '../parts/lazychart';
import { Empty, Name } from '../parts/small';
import { href } from '../router';
import { planStart, shifted } from '../series';
import { span } from '../time';
import { useFresh } from '../use';
import { ruleWords } from '../words';

interface Spec {
  selector?: string;
  priority?: number;
  enabled?: boolean;
  description?: string;
  rules?: Record<string, unknown>[];
}
const specOf = (doc: Document): Spec => doc.spec as Spec;

function Rules({ doc }: { doc: Document }) {
  return (
    <ul class="rules">
      {(specOf(doc).rules ?? []).map((rule, i) => {
        const { kind, words } = ruleWords(rule);
        return (
          <li key={i}>
            <b>{kind}</b> <Name text={words} />
          </li>
        );
      })}
    </ul>
  );
}

function Matches({ name }: { name: string }) {
  const found = useFresh(
    `matches/${name}`,
    () => get<FleetAnswer>(`fleet?policy=${seg(name)}`),
    5000,
  ).value;
  if (!found) return <span class="dim">asking who it matches…</span>;
  const fleet = readFleet(found, null);
  if (fleet.count === 0) return <span class="bad">matches nothing</span>;
  const names = (list: string[]): string =>
    list.slice(0, 6).join(', ') + (list.length > 6 ? ` and ${list.length - 6} more` : '');
  return (
    <span>
      matches <b>{cellsOf(fleet, -1).length.toLocaleString()}</b> targets
      <span class="dim">
        {' '}
        ({fleet.count.toLocaleString()} release targets):{' '}
        <Name text={`${names(found.changes)} in ${names(found.environments)}`} />
      </span>
    </span>
  );
}

export function PoliciesView() {
  const documents = useFresh('policies', () => all<Document>('rolloutpolicies'), 5000);
  if (!documents.value) return <Empty>{documents.problem || 'Asking…'}</Empty>;
  return (
    <>
      <header class="head">
        <h1>Policies</h1>
        <p class="dim">All rules of all policies that match must allow before anything starts.</p>
      </header>
      <div class="groups">
        {documents.value.map((doc) => (
          <section class="card" key={doc.metadata.name}>
            <h2>
              <a href={href(['policy', doc.metadata.name])}>
                <Name text={doc.metadata.name} />
              </a>
              {specOf(doc).enabled === false ? <span class="dim"> switched off</span> : null}
            </h2>
            <p>
              <span class="dim">where </span>
              <code>
                <Name text={specOf(doc).selector ?? 'true'} />
              </code>{' '}
              — <Matches name={doc.metadata.name} />
            </p>
            <Rules doc={doc} />
          </section>
        ))}
        {documents.value.length === 0 ? (
          <Empty>There is no policy: everything starts at once.</Empty>
        ) : null}
      </div>
    </>
  );
}

/** What one edits: the document without what the server keeps. */
export function editable(doc: Document): string {
  const { name, labels } = doc.metadata;
  return JSON.stringify(
    {
      apiVersion: doc.apiVersion,
      kind: doc.kind,
      metadata: labels ? { name, labels } : { name },
      spec: doc.spec,
    },
    null,
    2,
  );
}

interface Compared {
  now: Plan;
  then: Plan;
}

function Figure({ name, now, then }: { name: string; now: string; then: string }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{now}</td>
      <td class={now === then ? '' : 'changed'}>{then}</td>
    </tr>
  );
}

const waits = (plan: Plan): string =>
  new Set(plan.waiting.map((one) => one.target)).size.toString();

function Both({ plans }: { plans: Compared }) {
  const { now, then } = plans;
  const from = planStart(now);
  const seconds = Math.max(now.seconds, then.seconds, 10);
  return (
    <section class="card" aria-label="Both plans">
      <h2>Both plans, from now on</h2>
      <table class="rows compare">
        <thead>
          <tr>
            <th scope="col" />
            <th scope="col">as it is</th>
            <th scope="col">with the change</th>
          </tr>
        </thead>
        <tbody>
          <Figure name="ends" now={now.outcome} then={then.outcome} />
          <Figure name="takes" now={span(now.seconds * 1000)} then={span(then.seconds * 1000)} />
          <Figure name="peak in flight" now={`${now.peakInFlight}`} then={`${then.peakInFlight}`} />
          <Figure name="starts" now={`${now.starts}`} then={`${then.starts}`} />
          <Figure
            name="targets done"
            now={`${now.done} of ${now.targets}`}
            then={`${then.done} of ${then.targets}`}
          />
          <Figure name="left waiting" now={waits(now)} then={waits(then)} />
        </tbody>
      </table>
      <p class="dim">Targets in flight: dashed as it is, solid with the change.</p>
      <Chart
        title="Targets in flight, both plans"
        past={[]}
        future={shifted(now.inFlight, from)}
        other={shifted(then.inFlight, from)}
        from={from}
        now={from}
        to={from + seconds * 1.03}
        height={180}
      />
    </section>
  );
}

function Editor({ doc }: { doc: Document }) {
  const [text, setText] = useState(() => editable(doc));
  const [plans, setPlans] = useState<Compared | null>(null);
  const [tried, setTried] = useState('');
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState('');
  const [saved, setSaved] = useState(false);
  // What is saved is a change of this, and of nothing that somebody else made of it meanwhile.
  const [version, setVersion] = useState(doc.metadata.resourceVersion ?? '*');
  const attempt = async (what: string, run: () => Promise<void>): Promise<void> => {
    setBusy(what);
    setProblem('');
    try {
      await run();
    } catch (error) {
      setProblem(
        error instanceof Refusal
          ? [
              error.message,
              ...error.problems.map((one) => `${one.path ?? ''}: ${one.message ?? ''}`),
            ].join('\n')
          : 'The server cannot be reached.',
      );
    }
    setBusy('');
  };
  const compare = (): Promise<void> =>
    attempt('compare', async () => {
      setSaved(false);
      const [now, then] = await Promise.all([
        post<Plan>('plan', { until: '7d' }),
        post<Plan>('plan', { until: '7d', documents: text }),
      ]);
      setPlans({ now, then });
      setTried(text);
    });
  const save = (): Promise<void> =>
    attempt('save', async () => {
      const answer = await request(`rolloutpolicies/${seg(doc.metadata.name)}`, {
        method: 'PUT',
        body: text,
        headers: { 'If-Match': version },
      });
      setVersion(((await answer.json()) as Document).metadata.resourceVersion ?? '*');
      setSaved(true);
      setPlans(null);
    });
  return (
    <>
      <section class="card">
        <h2>
          What if{' '}
          <span class="dim">edit a copy; JSON or YAML; nothing is changed by comparing</span>
        </h2>
        <textarea
          class="mono"
          rows={Math.min(40, text.split('\n').length + 1)}
          spellcheck={false}
          aria-label="A copy of the policy"
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
        {problem ? (
          <pre class="problem" role="alert">
            {problem}
          </pre>
        ) : null}
        {saved ? <p role="status">Saved.</p> : null}
        <p class="buttons">
          <button class="go" disabled={busy !== ''} onClick={() => void compare()}>
            {busy === 'compare' ? 'Planning…' : 'Compare plans'}
          </button>
          {mayAct() ? (
            <button
              disabled={busy !== '' || tried !== text || !plans}
              title={tried === text && plans ? '' : 'Compare first'}
              onClick={() => void save()}
            >
              Save this policy
            </button>
          ) : null}
        </p>
      </section>
      {plans ? <Both plans={plans} /> : null}
    </>
  );
}

export function PolicyView({ name }: { name: string }) {
  const doc = useFresh(`policy/${name}`, () => get<Document>(`rolloutpolicies/${seg(name)}`), 2000);
  if (!doc.value) return <Empty>{doc.problem || 'Asking…'}</Empty>;
  return (
    <>
      <header class="head">
        <h1>
          <a class="up" href={href(['policies'])}>
            Policies
          </a>{' '}
          <Name text={name} />
        </h1>
        <p>
          <Matches name={name} />
        </p>
      </header>
      <div class="groups">
        <section class="card">
          <h2>In words</h2>
          <Rules doc={doc.value} />
        </section>
        <Editor key={name} doc={doc.value} />
      </div>
    </>
  );
}
