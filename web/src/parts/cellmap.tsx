// SPDX-License-Identifier: Apache-2.0
// Many cells, cheaply: one canvas a group, and only cells whose state changed are drawn again. Told
// apart by shape as well as by colour. Arrow keys move a mark that is read out; the list beside it
// (views/fleet.tsx) is for those who want a table.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

import { STATES, STATE_WORDS, stateOf, type Cell, type Fleet } from '../fleet';

export interface Look {
  cell: Cell;
  x: number;
  y: number;
}

interface Props {
  name: string;
  fleet: Fleet;
  cells: readonly Cell[];
  size: number;
  look: (look: Look | null) => void;
  open: (cell: Cell) => void;
  /** What a cell is called when it is read out. */
  title: (cell: Cell) => string;
}

const GAP = 2;

const COLOURS = new Map<string, string>();
const dark = matchMedia('(prefers-color-scheme: dark)');

function colour(name: string): string {
  let value = COLOURS.get(name);
  if (!value) {
    value = getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    COLOURS.set(name, value);
  }
  return value;
}

/** When light turns dark. */
export function forgetColours(): void {
  COLOURS.clear();
  SPRITES.clear();
}
dark.addEventListener('change', forgetColours);

const SPRITES = new Map<string, HTMLCanvasElement>();

function drawGlyph(c: CanvasRenderingContext2D, state: string, s: number): void {
  c.lineWidth = Math.max(1.25, s / 9);
  c.strokeStyle = c.fillStyle = colour(`on-${state}`);
  const in1 = s * 0.28;
  const in2 = s - in1;
  c.beginPath();
  if (state === 'failed') {
    c.moveTo(in1, in1);
    c.lineTo(in2, in2);
    c.moveTo(in2, in1);
    c.lineTo(in1, in2);
    c.stroke();
  } else if (state === 'blocked') {
    c.moveTo(in1, s / 2);
    c.lineTo(in2, s / 2);
    c.stroke();
  } else if (state === 'inFlight') {
    c.moveTo(s * 0.34, s * 0.26);
    c.lineTo(s * 0.74, s / 2);
    c.lineTo(s * 0.34, s * 0.74);
    c.fill();
  } else if (state === 'excluded') {
    c.moveTo(in1, in2);
    c.lineTo(in2, in1);
    c.stroke();
  }
}

function sprite(state: number, size: number, ratio: number): HTMLCanvasElement {
  const key = `${state}/${size}/${ratio}`;
  let made = SPRITES.get(key);
  if (made) return made;
  const name = STATES[state] ?? 'waiting';
  made = document.createElement('canvas');
  made.width = made.height = Math.round(size * ratio);
  const c = made.getContext('2d');
  if (c) {
    c.scale(made.width / size, made.height / size);
    c.beginPath();
    c.roundRect(0, 0, size, size, size > 11 ? 3 : 2);
    c.fillStyle = colour(`s-${name}`);
    c.fill();
    if (name === 'waiting' || name === 'excluded') {
      c.beginPath();
      c.roundRect(0.5, 0.5, size - 1, size - 1, size > 11 ? 3 : 2);
      c.lineWidth = 1;
      c.strokeStyle = colour(`on-${name}`);
      c.stroke();
    }
    drawGlyph(c, name, size);
  }
  SPRITES.set(key, made);
  return made;
}

export const cellSize = (count: number): number =>
  count <= 120 ? 22 : count <= 600 ? 17 : count <= 3000 ? 13 : 10;

export function CellMap({ name, fleet, cells, size, look, open, title }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const drawn = useRef<{ key: string; states: Uint8Array }>({ key: '', states: new Uint8Array() });
  const [width, setWidth] = useState(0);
  const [mark, setMark] = useState(-1);
  const step = size + GAP;
  const columns = Math.max(1, Math.floor((width + GAP) / step));
  const rows = Math.ceil(cells.length / columns);

  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const fit = new ResizeObserver(() => setWidth(box.clientWidth));
    fit.observe(box);
    setWidth(box.clientWidth);
    return () => fit.disconnect();
  }, []);

  const [, repaint] = useState(0);
  useEffect(() => {
    const again = (): void => repaint((n) => n + 1);
    dark.addEventListener('change', again);
    return () => dark.removeEventListener('change', again);
  }, []);

  useLayoutEffect(() => {
    const c = canvas.current?.getContext('2d');
    if (!c || !canvas.current || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const key = `${columns}/${rows}/${size}/${ratio}/${cells.length}/${colour('s-done')}`;
    const fresh = drawn.current.key !== key;
    if (fresh) {
      canvas.current.width = Math.round(columns * step * ratio);
      canvas.current.height = Math.round(rows * step * ratio);
      drawn.current = { key, states: new Uint8Array(cells.length).fill(255) };
    }
    const states = drawn.current.states;
    for (let i = 0; i < cells.length; i++) {
      const cell = cells[i] as Cell;
      const state = stateOf(fleet, cell);
      if (states[i] === state) continue;
      states[i] = state;
      const x = Math.round((i % columns) * step * ratio);
      const y = Math.round(Math.floor(i / columns) * step * ratio);
      const image = sprite(state, size, ratio);
      c.clearRect(x, y, image.width, image.height);
      c.drawImage(image, x, y);
    }
  });

  const point = (i: number): Look | null => {
    const cell = cells[i];
    const box = canvas.current?.getBoundingClientRect();
    if (!cell || !box) return null;
    return {
      cell,
      x: box.left + (i % columns) * step + size / 2,
      y: box.top + Math.floor(i / columns) * step + size,
    };
  };
  const under = (event: MouseEvent): number => {
    const column = Math.floor(event.offsetX / step);
    if (column >= columns || column < 0) return -1;
    const i = Math.floor(event.offsetY / step) * columns + column;
    return i < cells.length ? i : -1;
  };
  const show = (i: number): void => {
    if (i === mark) return;
    setMark(i);
    look(i < 0 ? null : point(i));
  };
  const keys: Record<string, number> = {
    ArrowRight: 1,
    ArrowLeft: -1,
    ArrowDown: columns,
    ArrowUp: -columns,
  };
  const onKey = (event: KeyboardEvent): void => {
    const move = keys[event.key];
    const marked = cells[mark];
    if (event.key === 'Enter' && marked) open(marked);
    else if (event.key === 'Escape') show(-1);
    else if (move !== undefined) {
      event.preventDefault();
      show(Math.max(0, Math.min(cells.length - 1, mark < 0 ? 0 : mark + move)));
    }
  };
  const marked = cells[mark];
  const words = marked
    ? `${title(marked)}: ${STATE_WORDS[STATES[stateOf(fleet, marked)] ?? 'waiting']}`
    : '';
  return (
    <div class="cellmap">
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`${name}: ${cells.length} targets; arrow keys walk over them, Enter opens one`}
        style={{ width: `${columns * step}px`, height: `${rows * step}px` }}
        onMouseMove={(event) => show(under(event))}
        onMouseLeave={() => show(-1)}
        onBlur={() => show(-1)}
        onClick={(event) => {
          const cell = cells[under(event)];
          if (cell) open(cell);
        }}
        onKeyDown={onKey}
      />
      {marked ? (
        <span
          class="mark"
          style={{
            left: `${(mark % columns) * step - 2}px`,
            top: `${Math.floor(mark / columns) * step - 2}px`,
            width: `${size + 4}px`,
            height: `${size + 4}px`,
          }}
        />
      ) : null}
      <span class="unseen" aria-live="polite">
        {words}
      </span>
    </div>
  );
}
