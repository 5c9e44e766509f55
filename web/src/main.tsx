// SPDX-License-Identifier: Apache-2.0
// Begins: session, frame, and which view is shown.
import { signal } from '@preact/signals';
import { render } from 'preact';

import { info, login, Refusal, setToken, token } from './api';
import { begin, connection } from './live';
import { Frame } from './frame';
import { Confirm } from './parts/confirm';
import { FleetView } from './views/fleet';
import { JournalView } from './views/journal';
import { Login, Token } from './views/login';
import { PoliciesView, PolicyView } from './views/policies';
import { RolloutView } from './views/rollout';
import { RolloutsView } from './views/rollouts';
import { TargetView } from './views/target';
import { readRoute, route } from './router';
import './style.css';

const problem = signal('');

async function enter(): Promise<void> {
  const shown = token.peek(); // without one it is only asked whether one is needed
  try {
    await begin();
    problem.value = '';
  } catch (error) {
    if (shown)
      problem.value = error instanceof Refusal ? error.message : 'the server cannot be reached';
    if (token.peek() === shown) setToken('');
  }
}

function View() {
  const [name = 'fleet', first = ''] = route.value.parts;
  if (name === 'rollouts') return <RolloutsView />;
  if (name === 'rollout') return <RolloutView key={first} change={first} />;
  if (name === 'target') return <TargetView key={first} name={first} />;
  if (name === 'policies') return <PoliciesView />;
  if (name === 'policy') return <PolicyView key={first} name={first} />;
  if (name === 'journal') return <JournalView />;
  if (name === 'token') return <Token />;
  return <FleetView />;
}

function App() {
  if (!token.value && !info.value) return <Login problem={problem.value} enter={enter} />;
  if (!info.value) return <p class="empty">{connection.value === 'lost' ? 'No answer.' : ''}</p>;
  return (
    <Frame>
      <View />
      <Confirm />
    </Frame>
  );
}

async function start(): Promise<void> {
  problem.value = await login();
  route.value = readRoute(location.hash); // a link's code is gone from the address by now
  await enter();
  const box = document.getElementById('app');
  if (box) {
    box.replaceChildren();
    render(<App />, box);
  }
}
void start();
