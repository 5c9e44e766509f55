// SPDX-License-Identifier: Apache-2.0
// What a view asks the server for, asked again when something happened: never two at once, never
// more often than told, and never more than a part of the time.
import { useEffect, useState } from 'preact/hooks';

import { Refusal } from './api';
import { beat } from './live';

const SHARE = 6;

export interface Fresh<T> {
  value: T | null;
  problem: string;
}

export function useFresh<T>(key: string, load: () => Promise<T>, leastMs = 1000): Fresh<T> {
  const [fresh, setFresh] = useState<Fresh<T>>({ value: null, problem: '' });
  useEffect(() => {
    let over = false;
    let asking = false;
    let dirty = false;
    let timer = 0;
    let askedAt = -Infinity;
    let cost = 0;
    const run = async (): Promise<void> => {
      timer = 0;
      asking = true;
      dirty = false;
      askedAt = performance.now();
      try {
        const value = await load();
        if (!over) setFresh({ value, problem: '' });
      } catch (error) {
        const problem = error instanceof Refusal ? error.message : 'the server cannot be reached';
        if (!over) setFresh((before) => ({ value: before.value, problem }));
      }
      cost = performance.now() - askedAt;
      asking = false;
      if (dirty) ask();
    };
    const ask = (): void => {
      dirty = true;
      if (over || asking || timer) return;
      const wait = askedAt + Math.max(leastMs, cost * SHARE) - performance.now();
      timer = window.setTimeout(() => void run(), Math.max(0, wait));
    };
    setFresh({ value: null, problem: '' });
    const leave = beat.subscribe(ask);
    return () => {
      over = true;
      clearTimeout(timer);
      leave();
    };
  }, [key]);
  return fresh;
}
