// SPDX-License-Identifier: Apache-2.0
// Every target a cell, in groups: by environment, by partition, by version or by any label.
import { computed, signal } from '@preact/signals';
import { useEffect, useMemo, useState } from 'preact/hooks';

import {
  all,
  get,
  inOperator,
  isBundle,
  seg,
  type Document,
  type Page,
  type State,
  type Target,
} from '../api';
import {
  at,
  cellsOf,
  CHANGE,
  countStates,
  CURRENT,
  grouped,
  noCounts,
  order,
  STATE,
  STATES,
  STATE_WORDS,
  stateOf,
  WANTED,
  type Cell,
  type CellGroup,
  type Counts,
  type Fleet,
} from '../fleet';
import { documentsChanged, fleet } from '../live';
import { CellMap, cellSize, type Look } from '../parts/cellmap';
import { Badge, Bar, Empty, Legend, Name, percent, Said } from '../parts/small';
import { go, href, route, setQuery } from '../router';
import { shownGroup, shownVersion } from '../series';
import { plain } from '../words';

const LIST_ROWS = 100;
const LABEL_KEYS_MOST = 50;

const labels = signal<ReadonlyMap<string, Record<string, string>>>(new Map());
const labelKeys = computed(() => {
  const keys = new Set<string>();
  for (const set of labels.value.values())
    for (const key of Object.keys(set)) if (keys.size < LABEL_KEYS_MOST) keys.add(key);
  return [...keys].sort(order);
});

async function loadLabels(): Promise<void> {
  const resources = await all<Document>('resources');
  labels.value = new Map(resources.map((one) => [one.metadata.name, one.metadata.labels ?? {}]));
}

function useLabels(): void {
  const changed = documentsChanged.value;
  useEffect(() => {
    // After the first picture is drawn: it does not need them.
    const id = window.setTimeout(() => void loadLabels().catch(() => undefined), 200);
    return () => clearTimeout(id);
  }, [changed]);
}

/** Nodes are in compartments, clusters in partitions; a server's targets may be in either. */
function GROUP_WORD(): string {
  const changes = fleet.value?.changes ?? [];
  const bundles = changes.filter(isBundle).length;
  if (!inOperator() || (bundles > 0 && bundles < changes.length))
    return 'compartment or partition';
  return bundles > 0 ? 'partition' : 'compartment';
}
const groupText = (name: string): string => shownGroup(name, `in no ${GROUP_WORD()}`);

function groupName(f: Fleet, by: string): (cell: Cell) => string {
  if (by === 'environment') return (cell) => f.environments[cell.environment] ?? '';
  if (by === 'partition') return (cell) => groupText(f.groups[cell.group] ?? '');
  if (by === 'version')
    return (cell) =>
      shownVersion(f.versions[at(f, cell.rows[0] ?? 0, CURRENT)] || 'no version yet');
  const key = by.replace(/^label:/, '');
  return (cell) => labels.value.get(f.targets[cell.target] ?? '')?.[key] ?? `without ${key}`;
}

/** What the cells of a group are, where an operator has two kinds. */
function cellsWord(f: Fleet, cells: readonly Cell[]): string {
  if (!inOperator()) return '';
  const of = cells.map((cell) => isBundle(f.changes[at(f, cell.rows[0] ?? 0, CHANGE)] ?? ''));
  return of.every((bundle) => bundle) ? ' clusters' : of.some((bundle) => bundle) ? '' : ' nodes';
}

function countCells(f: Fleet, cells: readonly Cell[]): Counts {
  const counts = noCounts();
  for (const cell of cells) {
    const state = STATES[stateOf(f, cell)];
    if (state) counts[state]++;
    counts.all++;
  }
  return counts;
}

/** What hovering shows: each change there, and why the loudest is not moving. */
function Hint({ look, change }: { look: Look; change: number }) {
  const f = fleet.value;
  const [answer, setAnswer] = useState<Target | null>(null);
  const cell = look.cell;
  const row = f
    ? (cell.rows.find((one) => at(f, one, STATE) === stateOf(f, cell)) ?? cell.rows[0] ?? 0)
    : 0;
  const place = f?.environments[cell.environment] ?? '';
  const path = f
    ? `targets?deployment=${seg(f.changes[at(f, row, CHANGE)] ?? '')}` +
      `&resource=${seg(f.targets[cell.target] ?? '')}` +
      `${place ? `&environment=${seg(place)}` : ''}&limit=1`
    : '';
  useEffect(() => {
    setAnswer(null);
    const stop = new AbortController();
    const id = window.setTimeout(() => {
      get<Page<Target>>(path, stop.signal).then(
        (page) => setAnswer(page.items[0] ?? null),
        () => undefined,
      );
    }, 90);
    return () => {
      clearTimeout(id);
      stop.abort();
    };
  }, [path]);
  if (!f) return null;
  const right = look.x > window.innerWidth - 360;
  const below = look.y < window.innerHeight - 260;
  return (
    <div
      class={`hint${right ? ' to-left' : ''}${below ? '' : ' above'}`}
      style={{ left: `${look.x}px`, top: `${look.y}px` }}
    >
      <b>
        <Name text={f.targets[cell.target] ?? ''} />
      </b>
      {place ? (
        <span class="dim">
          {' '}
          in <Name text={place} />
        </span>
      ) : null}
      <ul>
        {cell.rows
          .filter((one) => change < 0 || at(f, one, CHANGE) === change)
          .slice(0, 8)
          .map((one) => (
            <li key={one}>
              <Badge state={STATES[at(f, one, STATE)] ?? 'waiting'} />{' '}
              <Name text={f.changes[at(f, one, CHANGE)] ?? ''} />{' '}
              <span class="dim">
                <Name
                  text={shownVersion(
                    f.versions[at(f, one, WANTED)] || f.versions[at(f, one, CURRENT)] || '',
                  )}
                />
              </span>
            </li>
          ))}
      </ul>
      <p>{answer ? <Said text={answer.summary} /> : <span class="dim">asking why…</span>}</p>
    </div>
  );
}

function List({ f, cells, filter }: { f: Fleet; cells: readonly Cell[]; filter: string }) {
  const [most, setMost] = useState(LIST_ROWS);
  const placed = !inOperator();
  const found = cells.filter((cell) => (f.targets[cell.target] ?? '').includes(filter));
  return (
    <>
      <table class="rows">
        <caption class="unseen">Targets and their state</caption>
        <thead>
          <tr>
            <th scope="col">target</th>
            <th scope="col">{placed ? 'environment' : GROUP_WORD()}</th>
            <th scope="col">state</th>
            <th scope="col">changes that are not done</th>
          </tr>
        </thead>
        <tbody>
          {found.slice(0, most).map((cell) => {
            const target = f.targets[cell.target] ?? '';
            const open = cell.rows.filter((row) => STATES[at(f, row, STATE)] !== 'done');
            return (
              <tr key={`${cell.environment}/${cell.target}`}>
                <td>
                  <a href={href(['target', target])}>
                    <Name text={target} />
                  </a>
                </td>
                <td>
                  <Name
                    text={
                      placed
                        ? (f.environments[cell.environment] ?? '')
                        : groupText(f.groups[cell.group] ?? '')
                    }
                  />
                </td>
                <td>
                  <Badge state={STATES[stateOf(f, cell)] ?? 'waiting'} />
                </td>
                <td>
                  {open
                    .slice(0, 4)
                    .map((row) => f.changes[at(f, row, CHANGE)])
                    .join(', ')}
                  {open.length > 4 ? ` and ${open.length - 4} more` : ''}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {found.length > most ? (
        <button onClick={() => setMost(most + LIST_ROWS)}>
          Show more ({(found.length - most).toLocaleString()} left)
        </button>
      ) : null}
      {found.length === 0 ? (
        <Empty>{filter ? 'No target here has that in its name.' : 'There is none.'}</Empty>
      ) : null}
    </>
  );
}

function Choices({ f, by, list }: { f: Fleet; by: string; list: boolean }) {
  const change = route.value.query.get('change') ?? '';
  const partitioned = f.groups.some((name) => name !== '');
  return (
    <div class="choices">
      <label>
        Change{' '}
        <select value={change} onChange={(e) => setQuery({ change: e.currentTarget.value })}>
          <option value="">all of them</option>
          {f.changes.map((name) => (
            <option key={name} value={name}>
              {plain(name.slice(0, 80))}
            </option>
          ))}
        </select>
      </label>
      <label>
        Group by{' '}
        <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value })}>
          {inOperator() ? null : <option value="environment">environment</option>}
          {partitioned ? <option value="partition">{GROUP_WORD()}</option> : null}
          <option value="version">version that runs</option>
          {labelKeys.value.map((key) => (
            <option key={key} value={`label:${key}`}>
              label {plain(key.slice(0, 80))}
            </option>
          ))}
        </select>
      </label>
      {list ? (
        <label>
          State{' '}
          <select
            value={route.value.query.get('state') ?? ''}
            onChange={(e) => setQuery({ state: e.currentTarget.value })}
          >
            <option value="">any</option>
            {STATES.map((state) => (
              <option key={state} value={state}>
                {STATE_WORDS[state]}
              </option>
            ))}
          </select>
        </label>
      ) : null}
      <button
        aria-pressed={list}
        onClick={() => setQuery(list ? { as: '', state: '' } : { as: 'list' })}
      >
        {list ? 'Show as cells' : 'Show as list'}
      </button>
    </div>
  );
}

export function FleetView() {
  useLabels();
  const f = fleet.value;
  const [look, setLook] = useState<Look | null>(null);
  const [filter, setFilter] = useState('');
  const { query } = route.value;
  const by = query.get('by') ?? (inOperator() ? 'partition' : 'environment');
  const only = query.get('state') as State | null;
  const list = query.get('as') === 'list';
  const change = f && query.get('change') ? f.changes.indexOf(query.get('change') ?? '') : -1;
  // Names seldom change; states do all the time.
  const names = useMemo(() => ({}), [f?.sameNames === false ? f : null, f === null]);
  const cells = useMemo(() => (f ? cellsOf(f, change) : []), [names, change, f?.count]);
  const moving = by === 'version' ? f : names;
  const groups: CellGroup[] = useMemo(
    () => (f ? grouped(cells, groupName(f, by)) : []),
    [moving, cells, by, labels.value],
  );
  if (!f) return <Empty>Reading the fleet…</Empty>;
  if (f.count === 0)
    return (
      inOperator() ? (
        <Empty>No Skyhook selects a node, and no Bundle a cluster.</Empty>
      ) : (
      <Empty>
        There are no release targets yet. Apply a Resource, an Environment and a Deployment:{' '}
        <code>drover apply -f examples/fleet</code>
      </Empty>
      )
    );
  const counts = countCells(f, cells);
  const size = cellSize(cells.length);
  const released = countStates(f, change);
  return (
    <>
      <header class="head">
        <h1>Fleet</h1>
        <p class="big">
          <b>{cells.length.toLocaleString()}</b> targets, {percent(counts.done, counts.all)} done
          <span class="dim">
            {' '}
            · {released.all.toLocaleString()} {inOperator() ? 'placements' : 'release targets'}
          </span>
        </p>
        <Bar counts={counts} label="Targets" />
        <Legend counts={counts} change={query.get('change') ?? ''} />
        <Choices f={f} by={by} list={list} />
      </header>
      {list ? (
        <section class="card">
          <label class="search">
            Find{' '}
            <input
              type="search"
              value={filter}
              placeholder="part of a name"
              onInput={(e) => setFilter(e.currentTarget.value)}
            />
          </label>
          <List
            f={f}
            filter={filter}
            cells={only ? cells.filter((c) => STATES[stateOf(f, c)] === only) : cells}
          />
        </section>
      ) : (
        <div class="groups">
          {groups.map((group) => {
            const sum = countCells(f, group.cells);
            return (
              <section class="card group" key={group.name}>
                <h2>
                  <Name text={group.name} />
                  <span class="dim">
                    {' '}
                    {group.cells.length.toLocaleString()}
                    {cellsWord(f, group.cells)} · {percent(sum.done, sum.all)} done
                    {sum.failed ? ` · ${sum.failed} ${STATE_WORDS.failed}` : ''}
                    {sum.inFlight ? ` · ${sum.inFlight} ${STATE_WORDS.inFlight}` : ''}
                  </span>
                </h2>
                <CellMap
                  name={group.name.slice(0, 80)}
                  fleet={f}
                  cells={group.cells}
                  size={size}
                  look={setLook}
                  open={(cell) => go(['target', f.targets[cell.target] ?? ''])}
                  title={(cell) => (f.targets[cell.target] ?? '').slice(0, 80)}
                />
              </section>
            );
          })}
        </div>
      )}
      {look && !list ? <Hint look={look} change={change} /> : null}
    </>
  );
}
