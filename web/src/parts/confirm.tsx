// SPDX-License-Identifier: Apache-2.0
// Acts, each after a confirmation that says what will happen. Whether one may, the server decides;
// who may not sees no button.
import { signal } from '@preact/signals';
import { useEffect, useRef, useState } from 'preact/hooks';

import { mayDo, post, Refusal } from '../api';
import { plain } from '../words';

export interface Act {
  act: string;
  /** On the button. */
  label: string;
  /** What will happen, in a sentence. */
  says: string;
  body: Record<string, string>;
  /** Asks for a reason, which is kept in the journal. */
  reason?: boolean;
}

const asked = signal<Act | null>(null);
const outcome = signal('');

export function ActButton({ act, go }: { act: Act; go?: boolean }) {
  if (!mayDo(act.act, act.body['deployment'] ?? '')) return null;
  return (
    <button class={go ? 'go' : ''} onClick={() => (asked.value = act)}>
      {act.label}…
    </button>
  );
}

function Asking({ act }: { act: Act }) {
  const box = useRef<HTMLDialogElement>(null);
  const [problem, setProblem] = useState('');
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => box.current?.showModal(), []);
  const close = (): void => {
    asked.value = null;
  };
  const run = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await post(`actions/${act.act}`, reason ? { ...act.body, reason } : act.body);
      outcome.value = `${act.label}: done.`;
      window.setTimeout(() => (outcome.value = ''), 5000);
      close();
    } catch (error) {
      setProblem(error instanceof Refusal ? error.message : 'The server cannot be reached.');
      setBusy(false);
    }
  };
  return (
    <dialog ref={box} onClose={close} aria-labelledby="asking">
      <form onSubmit={(event) => void run(event)}>
        <h2 id="asking">{act.label}?</h2>
        <p>
          <bdi>{plain(act.says.slice(0, 1000))}</bdi>
        </p>
        {act.reason ? (
          <label>
            Why (kept in the journal)
            <input value={reason} onInput={(e) => setReason(e.currentTarget.value)} />
          </label>
        ) : null}
        {problem ? (
          <p class="problem" role="alert">
            {problem}
          </p>
        ) : null}
        <p class="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button class="go" disabled={busy}>
            {act.label}
          </button>
        </p>
      </form>
    </dialog>
  );
}

export function Confirm() {
  return (
    <>
      {asked.value ? <Asking act={asked.value} /> : null}
      <p class={`toast${outcome.value ? ' on' : ''}`} role="status">
        {outcome.value}
      </p>
    </>
  );
}
