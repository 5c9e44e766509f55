// SPDX-License-Identifier: Apache-2.0
// Without a session: how to get one.
import { useState } from 'preact/hooks';

import { setToken } from '../api';

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
