// SPDX-License-Identifier: Apache-2.0
// Jobs over time, a lane for each environment: solid what was, dashed what is planned.
import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { packed, type Bar, type Mark } from '../series';
import { shown, span, utc } from '../time';
import { plain } from '../words';

interface Props {
  bars: readonly Bar[];
  marks: readonly Mark[];
  /** When each window lets things start; seconds since 1970. */
  windows: readonly { name: string; open: readonly (readonly [number, number])[] }[];
  from: number;
  now: number;
  to: number;
  open: (bar: Bar) => void;
}

const LANE_TOP = 18;
const AXIS = 20;
const LANE_ROWS_MOST = 30;
const LANES_MOST = 40;
const STRIP = 18; // a window
const DASHED_LEAST = 6; // narrower ones are pale: there may be thousands, and no dash would be seen

interface Lane {
  name: string;
  bars: Bar[];
  rows: number[];
  count: number;
  height: number;
  top: number;
}

function lanesOf(bars: readonly Bar[], above: number): Lane[] {
  const names = [...new Set(bars.map((bar) => bar.lane))].sort().slice(0, LANES_MOST);
  let top = above;
  return names.map((name) => {
    const own = bars.filter((bar) => bar.lane === name);
    const { rows, count } = packed(own);
    const height = Math.min(count, LANE_ROWS_MOST) * rowHeight(count) + LANE_TOP + 6;
    const lane = { name, bars: own, rows, count, height, top };
    top += height;
    return lane;
  });
}

const rowHeight = (count: number): number => (count <= 8 ? 10 : count <= 16 ? 7 : 5);

/** Asked once for each picture: there may be thousands of bars. */
let colours = new Map<string, string>();
function css(name: string): string {
  let value = colours.get(name);
  if (value === undefined) {
    value = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    colours.set(name, value);
  }
  return value;
}

interface Paint {
  c: CanvasRenderingContext2D;
  width: number;
  x: (at: number) => number;
}

function paintBar({ c, x }: Paint, lane: Lane, i: number): void {
  const bar = lane.bars[i] as Bar;
  const pitch = rowHeight(lane.count);
  const row = (lane.rows[i] ?? 0) % LANE_ROWS_MOST;
  const y = lane.top + LANE_TOP + row * pitch;
  const h = pitch - 2;
  const solid = Math.min(bar.to, bar.planned);
  if (solid > bar.from) {
    c.fillStyle = bar.state === 'done' ? css('--on-done') : css(`--s-${bar.state}`);
    c.globalAlpha = bar.state === 'done' ? 0.55 : 1;
    c.fillRect(x(bar.from), y, Math.max(2, x(solid) - x(bar.from) - 1), h);
    c.globalAlpha = 1;
  }
  if (bar.planned < Infinity && bar.to > bar.planned) {
    c.strokeStyle = c.fillStyle = bar.state === 'failed' ? css('--s-failed') : css('--accent');
    const left = Math.round(x(bar.planned)) + 0.5;
    const wide = x(bar.to) - left;
    if (wide < DASHED_LEAST) {
      c.globalAlpha = 0.4;
      c.fillRect(left, y, Math.max(1, wide), h);
      c.globalAlpha = 1;
      return;
    }
    c.setLineDash([3, 2]);
    c.strokeRect(left, y + 0.5, wide - 1.5, h - 1);
    c.setLineDash([]);
  }
}

function paintAxis({ c, width, x }: Paint, props: Props, height: number): void {
  const seconds = props.to - props.from;
  const steps = [5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 21600, 86400, 604800];
  const least = (seconds * 90) / Math.max(1, width);
  const step = steps.find((one) => one >= least) ?? 604800;
  c.font = '11px system-ui';
  c.fillStyle = css('--dim');
  c.strokeStyle = css('--line');
  for (let at = Math.ceil(props.from / step) * step; at <= props.to; at += step) {
    const left = Math.round(x(at)) + 0.5;
    c.beginPath();
    c.moveTo(left, 0);
    c.lineTo(left, height - AXIS);
    c.stroke();
    if (left < width - 50) c.fillText(shown(at * 1000, props.now * 1000), left + 3, height - 6);
  }
  c.strokeStyle = css('--text');
  c.setLineDash([2, 3]);
  c.beginPath();
  c.moveTo(Math.round(x(props.now)) + 0.5, 0);
  c.lineTo(Math.round(x(props.now)) + 0.5, height - AXIS);
  c.stroke();
  c.setLineDash([]);
}

/** Open windows as strips above the lanes; while one of them is closed all lanes are shaded. */
function paintWindows({ c, width, x }: Paint, props: Props, height: number): void {
  const clamp = (at: number): number => Math.max(0, Math.min(width, x(at)));
  props.windows.forEach((window, i) => {
    const top = i * STRIP;
    const edges = [props.from, ...window.open.flat(), props.to];
    c.fillStyle = css('--line');
    c.globalAlpha = 0.45;
    for (let n = 0; n + 1 < edges.length; n += 2) {
      const left = clamp(edges[n] ?? 0);
      c.fillRect(left, STRIP * props.windows.length, clamp(edges[n + 1] ?? 0) - left, height);
    }
    c.fillStyle = css('--accent');
    c.globalAlpha = 0.3;
    for (const [from, to] of window.open)
      c.fillRect(clamp(from), top + 2, Math.max(1, clamp(to) - clamp(from)), STRIP - 4);
    c.globalAlpha = 1;
    c.fillStyle = css('--text');
    c.font = '11px system-ui';
    c.fillText(plain(`window ${window.name}`.slice(0, 60)), 2, top + 13);
  });
}

function paintMarks({ c, x }: Paint, lane: Lane, marks: readonly Mark[]): void {
  c.font = '10px system-ui';
  const name = c.measureText(lane.name).width * 1.25 + 6; // which is larger and bold
  let free = name + 4;
  for (const mark of marks) {
    if (mark.lane !== lane.name) continue;
    const left = Math.round(x(mark.at)) + 0.5;
    c.strokeStyle = css('--dim');
    c.setLineDash(mark.planned ? [2, 2] : []);
    c.beginPath();
    c.moveTo(left, lane.top + (left < name ? LANE_TOP - 2 : 4));
    c.lineTo(left, lane.top + lane.height - 4);
    c.stroke();
    c.setLineDash([]);
    if (left < free) continue;
    c.fillStyle = css('--dim');
    c.fillText(mark.text, left + 3, lane.top + 12);
    free = left + c.measureText(mark.text).width + 8;
  }
}

function paint(
  canvas: HTMLCanvasElement,
  props: Props,
  lanes: readonly Lane[],
  width: number,
): void {
  const c = canvas.getContext('2d');
  if (!c) return;
  colours = new Map();
  const height = heightOf(lanes, props.windows.length);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  c.scale(ratio, ratio);
  const scale = width / Math.max(1, props.to - props.from);
  const p: Paint = { c, width, x: (at) => (at - props.from) * scale };
  paintWindows(p, props, height - AXIS - STRIP * props.windows.length);
  paintAxis(p, props, height);
  const marks = [...props.marks].sort((a, b) => a.at - b.at);
  for (const lane of lanes) {
    paintMarks(p, lane, marks);
    for (let i = 0; i < lane.bars.length; i++) paintBar(p, lane, i);
    c.fillStyle = css('--text');
    c.font = '600 12px system-ui';
    c.fillText(plain(lane.name.slice(0, 60)), 2, lane.top + 12);
  }
}

const heightOf = (lanes: readonly Lane[], windows: number): number =>
  lanes.reduce((sum, lane) => sum + lane.height, 0) + AXIS + STRIP * windows;

export function Timeline(props: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [over, setOver] = useState<{ bar: Bar; x: number; y: number } | null>(null);
  const lanes = lanesOf(props.bars, STRIP * props.windows.length);
  useLayoutEffect(() => {
    const box = canvas.current?.parentElement;
    if (!box) return;
    const fit = new ResizeObserver(() => setWidth(box.clientWidth));
    fit.observe(box);
    setWidth(box.clientWidth);
    return () => fit.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (canvas.current && width > 0) paint(canvas.current, props, lanes, width);
  });
  const find = (event: MouseEvent): Bar | null => {
    const at = props.from + (event.offsetX / Math.max(1, width)) * (props.to - props.from);
    const lane = lanes.find(
      (one) => event.offsetY >= one.top && event.offsetY < one.top + one.height,
    );
    if (!lane) return null;
    const row = Math.floor((event.offsetY - lane.top - LANE_TOP) / rowHeight(lane.count));
    return (
      lane.bars.find(
        (bar, i) => (lane.rows[i] ?? 0) % LANE_ROWS_MOST === row && at >= bar.from && at <= bar.to,
      ) ?? null
    );
  };
  const ran = props.bars.filter((bar) => bar.planned > bar.from).length;
  const words =
    `${ran} that ran or run, ${props.bars.length - ran} that are planned, in ` +
    `${lanes.length} lanes${props.windows.length ? `, ${props.windows.length} windows` : ''}; ` +
    'the latest are listed below';
  return (
    <div class="timeline">
      <canvas
        ref={canvas}
        role="img"
        aria-label={words}
        style={{ width: '100%', height: `${heightOf(lanes, props.windows.length)}px` }}
        onMouseMove={(e) => {
          const bar = find(e);
          setOver(bar ? { bar, x: e.offsetX, y: e.offsetY } : null);
        }}
        onMouseLeave={() => setOver(null)}
        onClick={(e) => {
          const bar = find(e);
          if (bar) props.open(bar);
        }}
      />
      {over ? (
        <div
          class="hint small"
          style={{
            left: `${Math.min(over.x, Math.max(0, width - 240))}px`,
            top: `${over.y + 10}px`,
          }}
        >
          <b>
            <bdi>{plain(over.bar.target.slice(0, 80))}</bdi>
          </b>{' '}
          <span class="dim">
            <bdi>{plain(over.bar.version.slice(0, 60))}</bdi>{' '}
            {over.bar.role === 'member' ? '' : over.bar.role}
          </span>
          {over.bar.group ? (
            <>
              <br />
              <span class="dim">
                <bdi>{plain(over.bar.group.slice(0, 80))}</bdi>
              </span>
            </>
          ) : null}
          <br />
          {shown(over.bar.from * 1000, Date.now())}{' '}
          <span class="dim">({utc(over.bar.from * 1000)})</span>,{' '}
          {span((over.bar.to - over.bar.from) * 1000)}{' '}
          {over.bar.planned <= over.bar.from
            ? 'planned'
            : over.bar.state === 'inFlight'
              ? 'so far'
              : over.bar.state}
        </div>
      ) : null}
    </div>
  );
}
