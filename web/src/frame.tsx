// SPDX-License-Identifier: Apache-2.0
// Around every view: where one can go, who one is, and how fresh what is shown is.
import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

import { info, inOperator, setToken, token } from './api';
import { connection, freshAt, trouble } from './live';
import { now } from './parts/small';
import { href, route } from './router';
import { shown, span } from './time';

const PLACES = [
  ['fleet', 'Fleet'],
  ['rollouts', 'Rollouts'],
  ['policies', 'Policies'],
  ['journal', 'Journal'],
] as const;
/** An operator has other policies, which are not edited here. */
const places = () => PLACES.filter(([place]) => place !== 'policies' || !inOperator());
const HOME: Record<string, string> = { rollout: 'rollouts', target: 'fleet', policy: 'policies' };

function Fresh() {
  const state = connection.value;
  return (
    <span class={`fresh is-${state}`} role="status">
      <span class="dot" aria-hidden="true" />
      {state === 'live' ? 'live' : state === 'connecting' ? 'connecting' : 'not live'}
    </span>
  );
}

function Lost() {
  if (connection.value !== 'lost') return null;
  const since = freshAt.value;
  return (
    <div class="lost" role="alert">
      <b>{trouble.value ? 'There is no answer' : 'The connection is lost'}.</b>{' '}
      {trouble.value ? (
        <>
          The server says: <bdi>{trouble.value.slice(0, 200)}</bdi>.{' '}
        </>
      ) : null}
      {since
        ? `What you see was true at ${shown(since, now.value)}, ${span(now.value - since)} ago.`
        : ''}{' '}
      Trying again.
    </div>
  );
}

export function Frame({ children }: { children: ComponentChildren }) {
  const [name = 'fleet', of = ''] = route.value.parts;
  const here = HOME[name] ?? name;
  const title = of || (PLACES.find(([place]) => place === here)?.[1] ?? 'Fleet');
  useEffect(() => {
    document.title = `${title.slice(0, 80)} · Drover`;
  }, [title]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(e) => {
          e.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to the content
      </a>
      <nav class="top" aria-label="Main">
        <span class="brand" aria-hidden="true">
          <i />
          <i />
          <i />
          <i />
        </span>
        <b class="word">Drover</b>
        <ul>
          {places().map(([place, text]) => (
            <li key={place}>
              <a href={href([place])} aria-current={here === place ? 'page' : undefined}>
                {text}
              </a>
            </li>
          ))}
        </ul>
        <span class="who">
          <Fresh />
          <span class="dim caller">
            {info.value?.caller} · {info.value?.role}
          </span>
          {token.value ? (
            <button
              class="quiet"
              onClick={() => {
                setToken('');
                location.reload();
              }}
            >
              Leave
            </button>
          ) : (
            <a class="quiet" href={href(['token'])}>
              Use a token
            </a>
          )}
        </span>
      </nav>
      <Lost />
      <main id="main" tabIndex={-1} class={connection.value === 'lost' ? 'stale' : ''}>
        {children}
      </main>
    </>
  );
}
