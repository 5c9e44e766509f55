// SPDX-License-Identifier: Apache-2.0
// What happened, what was decided, and who did it; newest first. Each entry can be replayed.
import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';

import { all, get, inOperator, isBundle, type JournalEntry } from '../api';
import { recent } from '../live';
import { Empty, Name, Time } from '../parts/small';
import { href, route, setQuery } from '../router';
import { entryTarget, entryWords } from '../words';

const PAGE = 300;

const KINDS = [
  ['', 'everything'],
  ['act', 'what people did'],
  ['decision', 'decisions'],
  ['fact', 'facts'],
  ['audit', 'audit'],
] as const;

function fits(entry: JournalEntry, kind: string, words: string): boolean {
  if (kind === 'act' ? !entry.who && entry.entry['fact'] !== 'act' : kind && entry.kind !== kind)
    return false;
  return !words || `${entry.who} ${entryWords(entry)}`.toLowerCase().includes(words.toLowerCase());
}

/** An operator's past is not on a disk; what it waits for now can be asked. */
function OfOperator({ entry, target }: { entry: JournalEntry; target: string }) {
  const change = String(entry.entry['change'] ?? '');
  if (!target) return null;
  return (
    <p>
      <a href={href(['target', target])}>Why it is not moving now</a>
      {change && !isBundle(change) ? (
        <>
          {' '}
          · <code>kubectl skyhook explain {target.slice(0, 80)}</code>
        </>
      ) : null}
    </p>
  );
}

function Entry({ entry }: { entry: JournalEntry }) {
  const [open, setOpen] = useState(false);
  const target = entryTarget(entry);
  return (
    <>
      <tr>
        <td class="dim">
          <button class="quiet" aria-expanded={open} onClick={() => setOpen(!open)}>
            {entry.sequence}
          </button>
        </td>
        <td class="when">
          <Time at={entry.at} />
        </td>
        <td class="dim">{entry.kind}</td>
        <td>
          <Name text={entry.who} />
        </td>
        <td>
          <Name text={entryWords(entry)} />
        </td>
      </tr>
      {open ? (
        <tr class="detail">
          <td colSpan={5}>
            {inOperator() ? (
              <OfOperator entry={entry} target={target} />
            ) : target ? (
              <p>
                Why it was not moving then:{' '}
                <code>
                  drover replay {target.slice(0, 80)} --until {entry.sequence}
                </code>{' '}
                · <a href={href(['target', target])}>why it is not moving now</a>
              </p>
            ) : (
              <p>
                Decide it again and compare: <code>drover replay --until {entry.sequence}</code>
              </p>
            )}
            <pre>{JSON.stringify(entry.entry, null, 2).slice(0, 20_000)}</pre>
          </td>
        </tr>
      ) : null}
    </>
  );
}

/** An entry never changes: what was drawn of it is not drawn again with every new one. */
const rows = new WeakMap<JournalEntry, VNode>();
function rowOf(entry: JournalEntry): VNode {
  const row = rows.get(entry) ?? <Entry key={entry.sequence} entry={entry} />;
  rows.set(entry, row);
  return row;
}

export function JournalView() {
  const [older, setOlder] = useState<JournalEntry[]>([]);
  const [busy, setBusy] = useState(true);
  const kind = route.value.query.get('kind') ?? '';
  const [words, setWords] = useState('');
  const load = async (before: number): Promise<void> => {
    setBusy(true);
    const after = Math.max(0, before - 1 - PAGE);
    const found = await all<JournalEntry>(`journal?after=${after}`, before - 1 - after);
    setOlder((have) => [...found.filter((one) => one.sequence < before), ...have]);
    setBusy(false);
  };
  useEffect(() => {
    get<{ sequence: number }>('info')
      .then((info) => load(info.sequence + 1))
      .catch(() => setBusy(false));
  }, []);
  const last = older[older.length - 1]?.sequence ?? 0;
  const every =
    busy && older.length === 0
      ? []
      : [...older, ...recent.value.filter((one) => one.sequence > last)];
  const found = every.filter((entry) => fits(entry, kind, words)).reverse();
  const first = older[0]?.sequence ?? 1;
  return (
    <>
      <header class="head">
        <h1>Journal</h1>
        <p class="dim">
          {inOperator() ? (
            'Every fact, every decision and every act since this operator began, the latest 4,096.'
          ) : (
            <>
              Every fact, every decision and every act, as they are on disk.{' '}
              <code>drover replay</code> decides all of it again and compares.
            </>
          )}
        </p>
        <div class="choices">
          <label>
            Show{' '}
            <select value={kind} onChange={(e) => setQuery({ kind: e.currentTarget.value })}>
              {KINDS.map(([value, name]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            Find{' '}
            <input
              type="search"
              value={words}
              placeholder="words"
              onInput={(e) => setWords(e.currentTarget.value)}
            />
          </label>
        </div>
      </header>
      <section class="card">
        <table class="rows journal">
          <thead>
            <tr>
              <th scope="col">number</th>
              <th scope="col">when</th>
              <th scope="col">kind</th>
              <th scope="col">who</th>
              <th scope="col">what</th>
            </tr>
          </thead>
          <tbody>
            {found.slice(0, 400).map(rowOf)}
          </tbody>
        </table>
        {found.length === 0 && !busy ? (
          <Empty>Nothing here has these words; look further back.</Empty>
        ) : null}
        {first > 1 ? (
          <button disabled={busy} onClick={() => void load(first)}>
            Further back (before {first})
          </button>
        ) : null}
      </section>
    </>
  );
}
