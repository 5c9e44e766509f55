// SPDX-License-Identifier: Apache-2.0
// A count over time against its limit: solid as measured, dashed as planned.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';

import { columns, type Steps } from '../series';
import { shown, span } from '../time';

export interface ChartProps {
  title: string;
  past: Steps;
  future: Steps;
  /** A second future, to compare. */
  other?: Steps;
  limit?: number;
  from: number;
  now: number;
  to: number;
  height?: number;
}

const css = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const stepped = uPlot.paths.stepped?.({ align: 1 });

function seriesOf(props: ChartProps): uPlot.Series[] {
  const line = (more: uPlot.Series): uPlot.Series => ({
    points: { show: false },
    width: 2,
    ...(stepped ? { paths: stepped } : {}),
    ...more,
  });
  const list = [
    {},
    line({ label: 'measured', stroke: css('--accent'), fill: `${css('--accent')}22` }),
    line({ label: 'planned', stroke: css('--accent'), dash: [5, 4], width: 1.5 }),
  ];
  if (props.limit !== undefined)
    list.push(line({ label: 'limit', stroke: css('--s-failed'), width: 1 }));
  if (props.other)
    list.push(line({ label: 'with the change', stroke: css('--on-done'), width: 2 }));
  return list;
}

function dataOf(props: ChartProps): uPlot.AlignedData {
  const [times, measured, planned] = columns(props.past, props.future, props);
  const data: (number | null)[][] = [times, measured, planned];
  if (props.limit !== undefined) data.push(times.map(() => props.limit ?? null));
  if (!props.other) return data as uPlot.AlignedData;
  // Another axis of times: joined into one, with the gaps closed by the value before.
  const extra = columns([], props.other, props);
  const joined = uPlot.join([
    data as uPlot.AlignedData,
    [extra[0], extra[2]] as uPlot.AlignedData,
  ]) as (number | null | undefined)[][];
  return joined.map((column, i) => {
    let before: number | null = null;
    return column.map((value, row) => {
      const time = (joined[0] as number[])[row] ?? 0;
      const measuredHere = i === 1 ? time <= props.now : i === 0 || i === 3 || time >= props.now;
      if (value !== undefined && value !== null) before = value;
      return measuredHere ? before : null;
    });
  }) as uPlot.AlignedData;
}

/** The most there is in any of them; there may be more steps than a call takes arguments. */
const peakOf = (...all: Steps[]): number =>
  all.reduce((sum, steps) => steps.reduce((most, [, n]) => Math.max(most, n), sum), 0);

function optionsOf(props: ChartProps, width: number): uPlot.Options {
  const most = Math.max(1, props.limit ?? 0, peakOf(props.past, props.future, props.other ?? []));
  const axis = { stroke: css('--dim'), font: '11px system-ui', ticks: { show: false } };
  return {
    width,
    height: props.height ?? 130,
    series: seriesOf(props),
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { min: props.from, max: props.to, range: () => [props.from, props.to] },
      y: { range: () => [0, most * 1.15] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 90,
        size: 24,
        values: (_, splits) => splits.map((at) => shown(at * 1000, props.now * 1000)),
      },
      {
        ...axis,
        size: 34,
        space: 26,
        grid: { stroke: css('--line'), width: 1 },
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000],
      },
    ],
    hooks: {
      draw: [
        (u) => {
          const x = Math.round(u.valToPos(props.now, 'x', true)) + 0.5;
          u.ctx.save();
          u.ctx.strokeStyle = css('--dim');
          u.ctx.setLineDash([2, 3]);
          u.ctx.beginPath();
          u.ctx.moveTo(x, u.bbox.top);
          u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
          u.ctx.stroke();
          u.ctx.restore();
        },
      ],
    },
  };
}

export function Chart(props: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  useEffect(() => {
    const at = box.current;
    if (!at) return;
    // What the ranges and lines are made of; when it changes the chart is made anew.
    plot.current?.destroy();
    plot.current = new uPlot(optionsOf(props, at.clientWidth), dataOf(props), at);
    const fit = new ResizeObserver(() =>
      plot.current?.setSize({ width: at.clientWidth, height: props.height ?? 130 }),
    );
    fit.observe(at);
    return () => {
      fit.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [JSON.stringify([props.past, props.future, props.other, props.limit, props.from, props.to])]);
  const peak = peakOf(props.past, props.future);
  const words =
    `${props.title}: at most ${peak}${props.limit === undefined ? '' : ` of ${props.limit}`}, ` +
    `over ${span((props.to - props.from) * 1000)}`;
  return <div class="chart" ref={box} role="img" aria-label={words} />;
}
