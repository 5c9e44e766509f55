// SPDX-License-Identifier: Apache-2.0
// Where one is, in the fragment of the address: "#/target/web-1?change=web". The server never sees
// it, and back, forward and bookmarks work.
import { signal } from '@preact/signals';

export interface Route {
  parts: string[];
  query: URLSearchParams;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?');
  return {
    parts: path.split('/').filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
}

export const route = signal(readRoute(location.hash));
window.addEventListener('hashchange', () => {
  route.value = readRoute(location.hash);
  window.scrollTo(0, 0);
});

export function href(parts: readonly string[], query: Record<string, string> = {}): string {
  const text = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  return `#/${parts.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export const go = (parts: readonly string[], query: Record<string, string> = {}): void => {
  location.hash = href(parts, query);
};

/** Changes the query of where one is, without a step to go back over. */
export function setQuery(changes: Record<string, string>): void {
  const { parts, query } = route.peek();
  const all = { ...Object.fromEntries(query), ...changes };
  history.replaceState(null, '', href(parts, all));
  route.value = readRoute(location.hash);
}
