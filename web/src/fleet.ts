// SPDX-License-Identifier: Apache-2.0
// The fleet as the server's snapshot gives it, in flat arrays, and its cells in groups. Pure.
import type { State } from './api';

export const STATES: readonly State[] = [
  'waiting',
  'inFlight',
  'failed',
  'blocked',
  'excluded',
  'done',
];
export const STATE_WORDS: Record<State, string> = {
  waiting: 'waiting',
  inFlight: 'in flight',
  failed: 'failed',
  blocked: 'blocked',
  excluded: 'excluded',
  done: 'done',
};
/** Also told apart by a letter, for those who do not see the colours. */
export const STATE_LETTERS: Record<State, string> = {
  waiting: '○',
  inFlight: '▶',
  failed: '✕',
  blocked: '▬',
  excluded: '⁄',
  done: '■',
};
// What a cell shows that stands for several changes: the first of these that any of them has.
const LOUDEST: readonly State[] = ['failed', 'blocked', 'inFlight', 'waiting', 'done', 'excluded'];

export interface FleetAnswer {
  sequence: number;
  states: string[];
  changes: string[];
  /** Places of those that a person paused or halted. */
  paused: number[];
  environments: string[];
  targets: string[];
  versions: string[];
  groups: string[];
  cells: number[];
}

export interface Fleet extends FleetAnswer {
  /** How many release targets there are. */
  count: number;
  /** The names are those of the snapshot before: what was made of them still holds. */
  sameNames: boolean;
}

const NUMBERS = 7;
export const CHANGE = 0;
export const ENVIRONMENT = 1;
export const TARGET = 2;
export const STATE = 3;
export const WANTED = 4;
export const CURRENT = 5;
export const GROUP = 6;

export const at = (f: FleetAnswer, row: number, column: number): number =>
  f.cells[row * NUMBERS + column] ?? 0;

const same = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((text, i) => text === b[i]);

export function readFleet(answer: FleetAnswer, before: Fleet | null): Fleet {
  const count = answer.cells.length / NUMBERS;
  let sameNames =
    before !== null &&
    before.count === count &&
    same(before.targets, answer.targets) &&
    same(before.changes, answer.changes) &&
    same(before.environments, answer.environments) &&
    same(before.groups, answer.groups);
  for (let row = 0; sameNames && before && row < count; row++)
    sameNames =
      at(before, row, TARGET) === at(answer, row, TARGET) &&
      at(before, row, GROUP) === at(answer, row, GROUP);
  return { ...answer, count, sameNames };
}

export type Counts = Record<State, number> & { all: number };

export function noCounts(): Counts {
  return { waiting: 0, inFlight: 0, failed: 0, blocked: 0, excluded: 0, done: 0, all: 0 };
}

/** Release targets of one change, or of all (-1), by state. */
export function countStates(f: Fleet, change: number): Counts {
  const counts = noCounts();
  for (let row = 0; row < f.count; row++) {
    if (change >= 0 && at(f, row, CHANGE) !== change) continue;
    const state = STATES[at(f, row, STATE)];
    if (state) counts[state]++;
    counts.all++;
  }
  return counts;
}

/** One cell: a target in an environment. */
export interface Cell {
  target: number;
  environment: number;
  group: number;
  rows: number[];
}

/** The cells of one change, or of all (-1). */
export function cellsOf(f: Fleet, change: number): Cell[] {
  const byKey = new Map<number, Cell>();
  for (let row = 0; row < f.count; row++) {
    if (change >= 0 && at(f, row, CHANGE) !== change) continue;
    const target = at(f, row, TARGET);
    const environment = at(f, row, ENVIRONMENT);
    const key = target * f.environments.length + environment;
    const group = at(f, row, GROUP);
    const cell = byKey.get(key);
    if (!cell) {
      byKey.set(key, { target, environment, group, rows: [row] });
      continue;
    }
    cell.rows.push(row);
    // Of several changes the first counts that puts it into a group somebody gave a name.
    if (/^(__default__)?$/.test(f.groups[cell.group] ?? '')) cell.group = group;
  }
  const name = (cell: Cell): string => f.targets[cell.target] ?? '';
  return [...byKey.values()].sort((a, b) => order(name(a), name(b)));
}

const numbered = new Intl.Collator('en', { numeric: true });
export const order = (a: string, b: string): number => numbered.compare(a, b);

const RANK = STATES.map((state) => LOUDEST.indexOf(state));

/** The loudest state of a cell's rows, as a number into STATES. */
export function stateOf(f: Fleet, cell: Cell): number {
  let best = 0;
  let rank = 99;
  for (const row of cell.rows) {
    const state = at(f, row, STATE);
    const r = RANK[state] ?? 99;
    if (r < rank) {
      rank = r;
      best = state;
    }
  }
  return best;
}

export interface CellGroup {
  name: string;
  cells: Cell[];
}

/** Cells in groups by what a function says of each; groups in order of their names. */
export function grouped(cells: readonly Cell[], by: (cell: Cell) => string): CellGroup[] {
  const groups = new Map<string, Cell[]>();
  for (const cell of cells) {
    const name = by(cell);
    const group = groups.get(name);
    if (group) group.push(cell);
    else groups.set(name, [cell]);
  }
  return [...groups]
    .map(([name, list]) => ({ name, cells: list }))
    .sort((a, b) => order(a.name, b.name));
}
