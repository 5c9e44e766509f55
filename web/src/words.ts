// SPDX-License-Identifier: Apache-2.0
// What machines write, in words: rules of policies, entries of the journal, what would release a
// target. Pure; says nothing that is not in its input.
import type { JournalEntry, Reason } from './api';

type Values = Record<string, unknown>;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
const number = (value: unknown): number => (typeof value === 'number' ? value : 0);
const some = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** A text as it is written: what would turn the direction of what follows, or is no letter at all,
 *  is spelled out, so that nothing looks like something else. */
export const plain = (value: string): string =>
  value.replace(
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** "90s", "15m", "2h" of a number of seconds. */
export function seconds(value: unknown): string {
  const n = number(value);
  if (n >= 86400 && n % 86400 === 0) return `${n / 86400}d`;
  if (n >= 3600 && n % 3600 === 0) return `${n / 3600}h`;
  return n >= 120 && n % 60 === 0 ? `${n / 60}m` : `${n}s`;
}

const soak = (minutes: number): string =>
  minutes ? `, and soak there for ${minutes} minutes` : '';

const RULES: Record<string, (r: Values) => string> = {
  deploymentBracket: (r) =>
    'Changes a target once for everything new: collects for ' +
    `${seconds(r['readinessWindowSeconds'])}` +
    `${some(r['preSelector']) ? ', then what prepares' : ''}, then the members` +
    `${some(r['postSelector']) ? ', then what finishes' : ''}; one group at a time on a target.`,
  resourceConcurrency: (r) =>
    `At most ${number(r['limitValue'])}${r['limitType'] === 'percentage' ? '%' : ''} ` +
    `of the targets where ${text(r['groupSelector']) || 'any'} at once.`,
  gradualRollout: (r) =>
    r['rolloutType'] === 'linear-normalized'
      ? `One target after the other, all within ${seconds(r['timeScaleInterval'])}.`
      : `One target after the other, ${seconds(r['timeScaleInterval'])} apart.`,
  deploymentDependency: (r) =>
    `${r['match'] === 'any' ? 'One of' : 'All of'} ${text(r['dependsOn'])} must have run first.`,
  deploymentWindow: (r) =>
    `${r['allowWindow'] === false ? 'Nothing' : 'Only'} begins within ` +
    `${number(r['durationMinutes'])} minutes from ${text(r['rrule'])}` +
    `${some(r['timezone']) ? ` (${text(r['timezone'])})` : ''}.`,
  anyApproval: (r) => {
    const least = number(r['minApprovals']) || 1;
    return `${least} ${least === 1 ? 'person' : 'people'} must approve the version first.`;
  },
  environmentProgression: (r) =>
    `The version must first succeed on ${number(r['minimumSuccessPercentage']) || 100}% where ` +
    `${text(r['dependsOnEnvironmentSelector'])}` +
    `${soak(number(r['minimumSoakTimeMinutes']))}.`,
  versionSelector: (r) => `Only versions where ${text(r['selector'])}.`,
  versionCooldown: (r) =>
    `At least ${seconds(r['intervalSeconds'])} between two versions on a target.`,
  retry: (r) =>
    `What failed is tried again up to ${number(r['maxRetries'])} times, ` +
    `${seconds(r['backoffSeconds'])} later` +
    `${r['backoffStrategy'] === 'exponential' ? ', then longer' : ''}.`,
  rollback: () => 'What failed for good goes back to the version before.',
  verification: () => 'Measured after each job; good only when every metric has passed.',
  deploymentPolicy: () => 'Compartments with budgets and batches.',
  rolloutStrategy: (r) =>
    `Partitions, one after the other; at most ${String(r['maxUnavailable'] ?? 'all')} unavailable.`,
};

/** The kind of a rule and what it says. */
export function ruleWords(rule: Values): { kind: string; words: string } {
  for (const [kind, value] of Object.entries(rule)) {
    if (kind === 'id' || typeof value !== 'object' || value === null) continue;
    const say = RULES[kind];
    return { kind, words: say ? say(value as Values) : JSON.stringify(value) };
  }
  return { kind: 'rule', words: 'a rule without a kind' };
}

const RELEASED: Record<string, string> = {
  complete: 'when these are done',
  time: 'by itself, in time',
  resume: 'when it is resumed',
  approve: 'when somebody approves',
  retry: 'when it is tried again',
  reset: 'when it is reset',
  edit: 'when a document is changed',
  label: 'when a label is changed',
  untaint: 'when a taint is removed',
  uncordon: 'when it is uncordoned',
  thaw: 'when the freeze is ended',
  publish: 'when another version is published',
  online: 'when it is online again',
};

export const released = (reason: Reason): string =>
  RELEASED[reason.releasedBy.act] ?? `by ${reason.releasedBy.act}`;

const place = (e: Values): string =>
  [e['target'] ?? e['resource'], e['environment']].filter(some).map(text).join(' in ');
const named = (e: Values): string => {
  const doc = (e['document'] ?? {}) as { kind?: string; metadata?: { name?: string } };
  return `${doc.kind ?? text(e['kind'])} ${doc.metadata?.name ?? text(e['name'])}`.trim();
};

const FACTS: Record<string, (e: Values) => string> = {
  document: (e) => `${named(e)} was written`,
  documentGone: (e) => `${named(e)} was deleted`,
  target: (e) => `${named(e)} was written`,
  targetGone: (e) => `${named(e)} was deleted`,
  time: () => 'a time came that was waited for',
  job: (e) =>
    `job ${number(e['job'])} of ${text(e['deployment'])} on ${place(e)} ${text(e['outcome'])}` +
    `${some(e['reason']) ? `: ${text(e['reason'])}` : ''}`,
  act: (e) =>
    [
      text(e['act']),
      text(e['change']),
      text(e['name']),
      text(e['version']),
      text(e['rule']),
      place(e) && `on ${place(e)}`,
      some(e['selector']) ? `where ${text(e['selector'])}` : '',
      some(e['reason']) ? `because "${text(e['reason'])}"` : '',
    ]
      .filter(Boolean)
      .join(' '),
};

const DECISIONS: Record<string, (e: Values) => string> = {
  start: (e) => `start ${text(e['change'])} ${text(e['version'])} on ${place(e)}`,
  job: (e) =>
    `run job ${number(e['number'])}: ${text(e['change'])} ${text(e['version'])} on ${place(e)}`,
  release: (e) => `${text(e['change'])} ${text(e['version'])} on ${place(e)} ${text(e['state'])}`,
  slot: (e) =>
    `${text(e['target'])} ${e['taken'] ? 'takes' : 'gives back'} a slot of ${text(e['group'])}, ` +
    `${number(e['size'])} taken now`,
  group: (e) => `version group on ${place(e)} is ${text(e['state'])}`,
  batch: (e) =>
    `batch ${number(e['number'])} of ${text(e['group'])} opens with ${number(e['size'])}`,
  judge: (e) =>
    `batch ${number(e['number'])} of ${text(e['group'])} ${e['failed'] ? 'failed' : 'is done'}`,
  halt: (e) => `${text(e['change'])} ${text(e['group'])} is stopped`,
};

/** One entry of the journal in a sentence. */
export function entryWords(entry: JournalEntry): string {
  const e = entry.entry;
  if (entry.kind === 'audit') return auditWords(e);
  const table = entry.kind === 'fact' ? FACTS : DECISIONS;
  const name = text(e[entry.kind]);
  const say = table[name];
  return say ? say(e) : `${name} ${place(e)}`.trim();
}

function auditWords(e: Values): string {
  const name = text(e['audit']);
  if (name === 'jobStarted') return `job ${number(e['job'])} began`;
  const rest = Object.entries(e)
    .filter(([key, value]) => key !== 'audit' && some(value))
    .map(([key, value]) => `${key} ${String(value)}`);
  return [name.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`), ...rest].join(' ');
}

/** The target that an entry is about, if it is about one. */
export const entryTarget = (entry: JournalEntry): string =>
  text(entry.entry['target'] ?? entry.entry['resource']);
