// SPDX-License-Identifier: Apache-2.0
// Every change at a glance: how far it is, and what its versions are.
import { get, inOperator, type Freeze, type Group, type Page } from '../api';
import { at, CHANGE, countStates, CURRENT, WANTED, type Fleet } from '../fleet';
import { fleet } from '../live';
import { Bar, Empty, Name, percent, Time } from '../parts/small';
import { ActButton } from '../parts/confirm';
import { href } from '../router';
import { shownGroup, shownVersion } from '../series';
import { STATE_WORDS } from '../fleet';
import { useFresh } from '../use';

/** The versions that a change is going to and coming from, the commonest first. */
export function versionsOf(f: Fleet, change: number): { wanted: string[]; current: string[] } {
  const count = (column: number): string[] => {
    const sums = new Map<string, number>();
    for (let row = 0; row < f.count; row++) {
      if (at(f, row, CHANGE) !== change) continue;
      const name = f.versions[at(f, row, column)] ?? '';
      if (name) sums.set(name, (sums.get(name) ?? 0) + 1);
    }
    return [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  };
  return { wanted: count(WANTED), current: count(CURRENT) };
}

export function Meter({ group }: { group: Group }) {
  const full = group.limit > 0 ? Math.min(1, group.holders / group.limit) : 0;
  return (
    <div class="meter">
      <span class="name">
        {group.kind === 'concurrency' ? null : (
          <span class="dim">
            <Name text={`${group.change} `} />
          </span>
        )}
        <Name text={shownGroup(group.name)} />
      </span>
      <span
        class="track"
        role="img"
        aria-label={`${group.holders} of ${group.limit} in use, ${group.peak} at most so far`}
      >
        <span style={{ width: `${full * 100}%` }} class={full >= 1 ? 'full' : ''} />
      </span>
      <span>
        <b>{group.holders}</b> of {group.limit}
        <span class="dim">
          {' '}
          · peak {group.peak} · {group.matched} targets
        </span>
      </span>
    </div>
  );
}

function Limits() {
  const { value } = useFresh('groups', () => get<Page<Group>>('groups?limit=1000'), 700);
  const groups = value?.items ?? [];
  if (groups.length === 0) return null;
  return (
    <section class="card">
      <h2>
        Limits <span class="dim">in use now</span>
      </h2>
      {groups.slice(0, 40).map((group) => (
        <Meter key={`${group.change}/${group.name}`} group={group} />
      ))}
    </section>
  );
}

export const useFreezes = (): readonly Freeze[] =>
  useFresh('freezes', () => get<Page<Freeze>>('freezes?limit=100'), 900).value?.items ?? [];

/** Every freeze in force, with what ends it. */
export function Freezes({ list }: { list: readonly Freeze[] }) {
  if (list.length === 0) return null;
  return (
    <section class="card freezes">
      <h2>
        Frozen <span class="dim">nothing of this starts</span>
      </h2>
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">freeze</th>
            <th scope="col">holds</th>
            <th scope="col">why</th>
            <th scope="col">until</th>
            <th>
              <span class="unseen">act</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((one) => (
            <tr key={one.name}>
              <td>
                <Name text={one.name || 'without a name'} />
              </td>
              <td>
                {one.selector ? (
                  <code>
                    <Name text={one.selector} />
                  </code>
                ) : (
                  'everything'
                )}
              </td>
              <td>
                <Name text={one.reason ?? ''} />{' '}
                <span class="dim">
                  <Name text={one.who ?? ''} />
                  {one.createdAt ? (
                    <>
                      {' '}
                      <Time at={one.createdAt} />
                    </>
                  ) : null}
                </span>
              </td>
              <td>{one.until ? <Time at={one.until} /> : 'it is thawed'}</td>
              <td class="act">
                <ActButton
                  act={{
                    act: 'thaw',
                    label: 'Thaw',
                    body: { name: one.name },
                    says:
                      `The freeze ${one.name} ends: what it held back may start again, ` +
                      'within every limit.',
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

export function RolloutsView() {
  const frozen = useFreezes();
  const f = fleet.value;
  if (!f) return <Empty>Reading the fleet…</Empty>;
  return (
    <>
      <header class="head row">
        <h1>Rollouts</h1>
        <span class="buttons">
          {frozen.some((one) => one.name === 'dashboard') ? null : (
            <ActButton
              act={{
                act: 'freeze',
                label: 'Freeze everything',
                reason: true,
                body: { name: 'dashboard' },
                says:
                  'Nothing starts any more, anywhere, until the freeze is ended. ' +
                  'What runs goes on to its end.',
              }}
            />
          )}
        </span>
      </header>
      <div class="groups">
        <Freezes list={frozen} />
        {f.changes.map((name, change) => {
          const counts = countStates(f, change);
          const { wanted, current } = versionsOf(f, change);
          const arrow =
            wanted[0] && wanted[0] !== current[0] && current[0]
              ? `${shownVersion(current[0])} → ${shownVersion(wanted[0])}`
              : shownVersion(wanted[0] ?? current[0] ?? 'no version');
          const open = (['inFlight', 'failed', 'blocked', 'waiting'] as const)
            .filter((state) => counts[state] > 0)
            .map((state) => `${counts[state].toLocaleString()} ${STATE_WORDS[state]}`);
          return (
            <a class="card rollout" key={name} href={href(['rollout', name])}>
              <span class="title">
                <Name text={name} />
              </span>
              {f.paused.includes(change) ? <span class="badge paused">paused</span> : null}
              <span class="dim version">
                <Name text={arrow} />
              </span>
              <Bar counts={counts} label={name.slice(0, 80)} />
              <span class="figures">
                <b>{percent(counts.done, counts.all)}</b>{' '}
                <span class="dim">
                  of {counts.all.toLocaleString()}
                  {open.length ? ` · ${open.join(' · ')}` : ''}
                </span>
              </span>
            </a>
          );
        })}
        {f.changes.length === 0 ? (
          <Empty>There is no {inOperator() ? 'Skyhook' : 'deployment'} yet.</Empty>
        ) : null}
        <Limits />
      </div>
    </>
  );
}
