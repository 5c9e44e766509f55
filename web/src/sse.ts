// SPDX-License-Identifier: Apache-2.0
// Server-Sent Events out of a stream of bytes. The browser's own EventSource cannot send a token.

export interface StreamEvent {
  id: string;
  data: string;
}

/** Cuts lines into events; keeps what is not complete yet. */
export class EventReader {
  private rest = '';
  private id = '';
  private data: string[] = [];

  feed(text: string): StreamEvent[] {
    const found: StreamEvent[] = [];
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop() ?? '';
    for (const raw of lines) {
      const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw;
      if (line === '') {
        if (this.data.length > 0) found.push({ id: this.id, data: this.data.join('\n') });
        this.data = [];
        continue;
      }
      const colon = line.indexOf(':');
      const name = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
      if (name === 'data') this.data.push(value);
      else if (name === 'id') this.id = value;
    }
    return found;
  }
}

export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  heard: () => void,
): AsyncGenerator<StreamEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new EventReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    yield* events.feed(decoder.decode(value, { stream: true }));
  }
}
