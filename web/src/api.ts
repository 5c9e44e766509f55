// SPDX-License-Identifier: Apache-2.0
// The server's HTTP interface: who we are, requests, and the shapes of answers. Every text that
// comes from here may be anything; it is shown as text and never as markup.
import { signal } from '@preact/signals';

export type State = 'waiting' | 'inFlight' | 'failed' | 'blocked' | 'excluded' | 'done';
export type Role = 'viewer' | 'operator' | 'admin' | 'worker';

export interface Info {
  version: string;
  startedAt: string;
  caller: string;
  role: Role;
  /** Who answers: the embedded control plane, or an operator in Kubernetes. */
  mode: 'serve' | 'operator';
  /** Of an operator: "Skyhook", "Bundle", or "NAMESPACE/Bundle" where it is that one alone. */
  actsOn?: string[];
  sequence: number;
}

export interface Reason {
  rule: string;
  scope: string;
  message: string;
  holders: string[];
  releasedBy: { act: string; of: string[]; any?: number };
  nextAt: string | null;
}

export interface Target {
  target: string;
  change: string;
  environment: string;
  state: State;
  summary: string;
  wanted: string;
  current: string;
  reasons: Reason[];
  /** On nodes: how far the packages are. */
  packages?: Package[];
  cordoned?: boolean;
  draining?: boolean;
}

export interface Package {
  name: string;
  version: string;
  stage: string;
  state: string;
  restarts: number;
  attempt: number;
}

export interface Freeze {
  name: string;
  selector?: string;
  reason?: string;
  who?: string;
  createdAt?: string;
  until?: string;
}

/** When a policy's deployment window lets things start. */
export interface Window {
  policy: string;
  allow: boolean;
  open: [string, string][];
}

export interface Job {
  number: number;
  deployment: string;
  environment: string;
  resource: string;
  version: string;
  group?: string;
  role: string;
  state: string;
  reason?: string;
  attempt: number;
  startedAt?: string;
  endedAt?: string;
}

export interface Group {
  kind: string;
  change: string;
  name: string;
  matched: number;
  limit: number;
  holders: number;
  peak: number;
}

export interface Document {
  apiVersion: string;
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; resourceVersion?: string };
  spec: Record<string, unknown>;
}

export interface JournalEntry {
  sequence: number;
  at: string;
  step: number;
  kind: 'fact' | 'decision' | 'audit';
  who: string;
  entry: Record<string, unknown>;
}

export interface PlanJob {
  deployment: string;
  resource: string;
  environment: string;
  version: string;
  group: string;
  role: string;
  start: number;
  end: number | null;
  startAt: string;
  status: string;
}

export interface PlanGroup {
  name: string;
  kind: string;
  matched: number;
  limit?: number;
  /** The limit of a compartment. */
  ceiling?: number;
  peak?: number;
  inUse?: [number, number][];
  batches?: PlanBatch[];
}

export interface PlanBatch {
  number: number;
  start: number;
  end: number | null;
  size: number;
  targets: string[];
  failed: boolean;
}

export interface Plan {
  outcome: 'complete' | 'stopped' | 'stalled' | 'horizon';
  reason: string;
  seconds: number;
  targets: number;
  done: number;
  failed: number;
  excluded: number;
  peakInFlight: number;
  starts: number;
  assumes: string;
  startAt: string;
  changes: { name: string; kind: string; groups: PlanGroup[] }[];
  jobs: PlanJob[];
  inFlight: [number, number][];
  waiting: { target: string; change: string; reasons: Reason[] }[];
}

export interface Page<T> {
  items: T[];
  continue?: string;
}

export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: { path?: string; message?: string }[] = [],
  ) {
    super(message);
  }
}

// In this tab only, and for as long as it is open: a cookie would also be sent to every other
// server on the same host, whatever its port, and by other pages' requests.
const KEPT_AS = 'drover-token';
export const token = signal(sessionStorage.getItem(KEPT_AS) ?? '');
export const info = signal<Info | null>(null);

export function setToken(value: string): void {
  token.value = value;
  if (value) sessionStorage.setItem(KEPT_AS, value);
  else sessionStorage.removeItem(KEPT_AS);
}

export const inOperator = (): boolean => info.value?.mode === 'operator';

/** Of an operator's changes only a Bundle has a namespace in its name. */
export const isBundle = (change: string): boolean => inOperator() && change.includes('/');

/** What an operator's API server can be asked for; everything else only a server of ours can. */
const SKYHOOK_ACTS: readonly string[] = ['pause', 'resume', 'retry'];
const BUNDLE_ACTS: readonly string[] = ['pause', 'resume', 'approve'];

export const hasAct = (act: string, change: string): boolean =>
  !inOperator() || (isBundle(change) ? BUNDLE_ACTS : SKYHOOK_ACTS).includes(act);

export const mayAct = (): boolean =>
  info.value?.role === 'operator' || info.value?.role === 'admin';

/** Whether there is such an act, and one may: in Kubernetes rights are given by kind. */
export function mayDo(act: string, change: string): boolean {
  if (!mayAct() || !hasAct(act, change)) return false;
  if (!inOperator()) return true;
  const on = info.value?.actsOn ?? [];
  if (!isBundle(change)) return on.includes('Skyhook');
  return on.includes('Bundle') || on.includes(`${change.split('/')[0]}/Bundle`);
}

async function refusal(answer: Response): Promise<Refusal> {
  try {
    const { error } = (await answer.json()) as {
      error: { code: string; message: string; problems?: { path?: string; message?: string }[] };
    };
    return new Refusal(answer.status, error.code, error.message, error.problems);
  } catch {
    return new Refusal(answer.status, 'unknown', `the server answered ${answer.status}`);
  }
}

export interface Wish {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export async function request(path: string, wish: Wish = {}): Promise<Response> {
  const headers: Record<string, string> = { ...wish.headers };
  const shown = token.value;
  if (shown) headers['Authorization'] = `Bearer ${shown}`;
  const init: RequestInit = {
    method: wish.method ?? 'GET',
    headers,
    credentials: 'omit',
    cache: 'no-store',
    referrerPolicy: 'no-referrer',
  };
  if (wish.body !== undefined)
    init.body = typeof wish.body === 'string' ? wish.body : JSON.stringify(wish.body);
  if (wish.signal) init.signal = wish.signal;
  const answer = await fetch(`/api/v1/${path}`, init);
  if (answer.ok) return answer;
  const why = await refusal(answer);
  // An answer may be late: what it says of another token than the present one is of no interest.
  if (answer.status === 401 && shown && shown === token.value) {
    setToken('');
    // An operator may be looked at without a token.
    if (inOperator()) location.reload();
    else info.value = null;
  }
  throw why;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  const answer = await request(path, signal ? { signal } : {});
  return (await answer.json()) as T;
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  const answer = await request(path, { method: 'POST', body });
  return (await answer.json()) as T;
}

const PAGE_ITEMS = 1000;

/** Every page of a list, or the first so many items. */
export async function all<T>(path: string, most = Infinity): Promise<T[]> {
  const items: T[] = [];
  let behind: string | undefined;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(PAGE_ITEMS, most - items.length)) });
    if (behind !== undefined) query.set('continue', behind);
    const page = await get<Page<T>>(`${path}${path.includes('?') ? '&' : '?'}${query}`);
    items.push(...page.items);
    behind = page.continue;
  } while (behind !== undefined && items.length < most);
  return items;
}

/** Names as one segment of a path. */
export const seg = (text: string): string => encodeURIComponent(text);

/** Takes the code of a one-time link out of the address, where it would be kept, and uses it. */
export async function login(): Promise<string> {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (!code) return '';
  history.replaceState(null, '', '#/');
  try {
    const given = await post<{ token: string }>('login', { code });
    setToken(given.token);
    return '';
  } catch (error) {
    return error instanceof Refusal ? error.message : 'the server cannot be reached';
  }
}
