// SPDX-License-Identifier: Apache-2.0
// The chart, fetched when a view first needs one: the first view does not.
import { signal } from '@preact/signals';
import type { FunctionComponent } from 'preact';

import type { ChartProps } from './chart';

const loaded = signal<FunctionComponent<ChartProps> | null>(null);
let asked = false;

export function Chart(props: ChartProps) {
  if (!asked) {
    asked = true;
    void import('./chart').then((module) => (loaded.value = module.Chart));
  }
  const Loaded = loaded.value;
  return Loaded ? <Loaded {...props} /> : <div class="chart" />;
}
