// SPDX-License-Identifier: Apache-2.0
// Jobs, or what an operator worked on, as a table.
import type { Job } from '../api';
import { STATE_WORDS } from '../fleet';
import { href } from '../router';
import { shownGroup, shownVersion } from '../series';
import { Name, Time } from './small';

/** Of one change, or of one target: what all rows share has no column. */
export function JobTable({ jobs, ofTarget }: { jobs: readonly Job[]; ofTarget?: boolean }) {
  return (
    <table class="rows">
      <thead>
        <tr>
          <th scope="col">job</th>
          <th scope="col">{ofTarget ? 'change' : 'target'}</th>
          <th scope="col">version</th>
          <th scope="col">state</th>
          <th scope="col">began</th>
          <th scope="col">ended</th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job) => (
          <tr key={job.number}>
            <td>
              <a href={href(['target', job.resource], { job: String(job.number) })}>{job.number}</a>
            </td>
            <td>
              {ofTarget ? (
                <a href={href(['rollout', job.deployment])}>
                  <Name text={job.deployment} />
                </a>
              ) : (
                <a href={href(['target', job.resource])}>
                  <Name text={job.resource} />
                </a>
              )}{' '}
              <span class="dim">
                <Name text={job.environment || shownGroup(job.group ?? '')} />
              </span>
            </td>
            <td>
              <Name text={shownVersion(job.version)} />
            </td>
            <td>
              <span class={/^succe/.test(job.state) || !job.endedAt ? '' : 'bad'}>{job.state}</span>
              {job.reason ? (
                <span class="dim">
                  {' '}
                  <Name text={job.reason} />
                </span>
              ) : null}
            </td>
            <td>{job.startedAt ? <Time at={job.startedAt} /> : STATE_WORDS.waiting}</td>
            <td>{job.endedAt ? <Time at={job.endedAt} /> : ''}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
