// SPDX-License-Identifier: Apache-2.0
// Without a session: how to get one.
import { useState } from 'preact/hooks';

import { setToken } from '../api';
import { go } from '../router';

export function Login({ problem, enter }: { problem: string; enter: () => Promise<void> }) {
  const [typed, setTyped] = useState('');
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setToken(typed.trim());
    setTyped('');
    await enter();
  };
  return (
    <main class="login">
      <h1>Drover</h1>
      {problem ? (
        <p class="problem" role="alert">
          {problem}
        </p>
      ) : null}
      <p>The dashboard is opened with a link that works once. On the server's machine:</p>
      <pre>drover dashboard</pre>
      <form onSubmit={(event) => void submit(event)}>
        <label>
          Or with a token
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            required
            onInput={(e) => setTyped(e.currentTarget.value)}
          />
        </label>
        <button class="go">Open</button>
      </form>
      <p class="dim">It stays in this tab and is forgotten when the tab is closed.</p>
    </main>
  );
}

/** An operator is looked at by everybody who reaches it; to act one shows who one is. */
export function Token() {
  const [typed, setTyped] = useState('');
  const submit = (event: Event): void => {
    event.preventDefault();
    setToken(typed.trim());
    go(['fleet']);
    location.reload();
  };
  return (
    <section class="login">
      <h1>Your token</h1>
      <p>
        What you do here is sent to the API server with your own Kubernetes token, and is allowed or
        refused there. One for a service account:
      </p>
      <pre>kubectl create token NAME</pre>
      <form onSubmit={submit}>
        <label>
          Token
          <input
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={typed}
            required
            onInput={(e) => setTyped(e.currentTarget.value)}
          />
        </label>
        <button class="go">Use it</button>
      </form>
      <p class="dim">It stays in this tab and is forgotten when the tab is closed.</p>
    </section>
  );
}
