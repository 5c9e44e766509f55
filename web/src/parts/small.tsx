// SPDX-License-Identifier: Apache-2.0
// Small pieces that every view uses.
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';

import type { State } from '../api';
import { STATE_LETTERS, STATE_WORDS, STATES, type Counts } from '../fleet';
import { href } from '../router';
import { shown, span, utc } from '../time';
import { plain } from '../words';

/** The time, once a second, for what counts down. */
export const now = signal(Date.now());
window.setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

const LONG = 120;

/** A text of the server's: isolated, so that its direction stays its own, and cut when long. */
export function Name({ text }: { text: string }) {
  const cut = plain(text.length > LONG ? `${text.slice(0, LONG)}…` : text);
  return <bdi title={text.length > LONG ? plain(text.slice(0, 2000)) : undefined}>{cut}</bdi>;
}

const INSTANT = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

/** A sentence of the server's: times in it are shown in the viewer's zone. */
export function Said({ text }: { text: string }) {
  const cut = plain(text.length > 600 ? `${text.slice(0, 600)}…` : text);
  return (
    <bdi>{cut.split(INSTANT).map((part, i) => (i % 2 ? <Time key={i} at={part} /> : part))}</bdi>
  );
}

export function Time({ at }: { at: string | number }) {
  const ms = typeof at === 'number' ? at : Date.parse(at);
  if (!Number.isFinite(ms)) return null;
  return (
    <time dateTime={utc(ms)} title={`${utc(ms)} (UTC)`}>
      {shown(ms, Date.now())}
    </time>
  );
}

/** "in 3m", "2m ago". */
export function Away({ at }: { at: string }) {
  const ms = Date.parse(at);
  if (!Number.isFinite(ms)) return null;
  const rest = ms - now.value;
  return (
    <time dateTime={utc(ms)} title={`${utc(ms)} (UTC)`}>
      {rest >= 500 ? `in ${span(rest)}` : rest > -5000 ? 'now' : `${span(-rest)} ago`}
    </time>
  );
}

export function Badge({ state }: { state: State }) {
  return (
    <span class={`badge s-${state}`}>
      <span class="glyph" aria-hidden="true">
        {STATE_LETTERS[state]}
      </span>
      {STATE_WORDS[state]}
    </span>
  );
}

/** How many of all are where, as one bar. */
export function Bar({ counts, label }: { counts: Counts; label: string }) {
  const parts = ORDER.filter((state) => counts[state] > 0);
  const words = parts.map((state) => `${counts[state]} ${STATE_WORDS[state]}`).join(', ');
  return (
    <div class="bar" role="img" aria-label={`${label}: ${words || 'nothing'}`}>
      {parts.map((state) => (
        <span key={state} class={`s-${state}`} style={{ flexGrow: counts[state] }} />
      ))}
    </div>
  );
}
const ORDER: readonly State[] = ['done', 'inFlight', 'failed', 'blocked', 'waiting', 'excluded'];

/** How many are in each state; each leads to a list of those. */
export function Legend({ counts, change }: { counts: Counts; change: string }) {
  return (
    <ul class="legend">
      {ORDER.filter((state) => counts[state] > 0 || state === 'done').map((state) => (
        <li key={state}>
          <a href={href(['fleet'], { change, as: 'list', state })}>
            <Badge state={state} /> <b>{counts[state].toLocaleString()}</b>
          </a>
        </li>
      ))}
    </ul>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

export const percent = (part: number, whole: number): string =>
  whole === 0 ? '–' : `${Math.floor((part * 100) / whole)}%`;

export { STATES };
