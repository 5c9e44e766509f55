// SPDX-License-Identifier: Apache-2.0
// Times for people: in the viewer's zone. Pure.

const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hour12: false,
});
const dayAndClock = new Intl.DateTimeFormat(undefined, {
  month: 'short',
  day: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  hour12: false,
});

const DAY_MS = 86_400_000;

/** The clock for what is less than half a day away, else also the day. */
export function shown(ms: number, now: number): string {
  return Math.abs(now - ms) < DAY_MS / 2 ? clock.format(ms) : dayAndClock.format(ms);
}

export const utc = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

/** "45s", "3m 10s", "2h 5m", "4d 1h". */
export function span(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60)
    return seconds % 60 && minutes < 10 ? `${minutes}m ${seconds % 60}s` : `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return minutes % 60 ? `${hours}h ${minutes % 60}m` : `${hours}h`;
  return hours % 24 ? `${Math.floor(hours / 24)}d ${hours % 24}h` : `${Math.floor(hours / 24)}d`;
}
