// SPDX-License-Identifier: Apache-2.0
// Begins: session, frame, and which view is shown.
import { signal } from '@preact/signals';
import { render } from 'preact';

import { info, login, Refusal, setToken, token } from './api';
import { begin, connection } from './live';
import { Frame } from './frame';
import { FleetView } from './views/fleet';
import { Login } from './views/login';
import { route } from './router';
import './style.css';

const problem = signal('');

async function enter(): Promise<string> {
  try {
    await begin();
    return '';
  } catch (error) {
    if (!(error instanceof Refusal)) return 'the server cannot be reached';
    setToken('');
    return error.message;
  }
}

function View() {
  const [name = 'fleet'] = route.value.parts;
  if (name === 'fleet') return <FleetView />;
  return <FleetView />;
}

function App() {
  if (!token.value) return <Login problem={problem.value} enter={enter} />;
  if (!info.value) return <p class="empty">{connection.value === 'lost' ? 'No answer.' : ''}</p>;
  return (
    <Frame>
      <View />
    </Frame>
  );
}

async function start(): Promise<void> {
  problem.value = await login();
  if (token.value) problem.value = await enter();
  const box = document.getElementById('app');
  if (box) {
    box.replaceChildren();
    render(<App />, box);
  }
}
void start();
