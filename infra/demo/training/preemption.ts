/**
 * `npm run demo:preemption`: 64 episodes of a real task; their trainer is killed with SIGKILL at three random moments, the node's
 * Edge once, and the job is paused as a whole for a while. Exits 0 only when every episode is complete and everything in it ran
 * exactly once. @paper §6.2 §6.3
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from '#sdk/mod.ts';
import { startDemoPlatform } from '../platform.ts';
import { ensureTrainingImages } from './images.ts';
import { main } from '../run-demo.ts';
import { findLeftovers } from '../leftovers.ts';
import { exportTrajectories, printPreemption, verifyPreemption } from './preemption-report.ts';
import { type Disturbed, disturb } from './disturb.ts';
import { repairRollout } from './tasks.ts';

const EPISODES = 64;

await main(async ({ say, signal }) => {
  const dir = mkdtempSync(join(tmpdir(), 'dsec-preemption-'));
  const started = await startDemoPlatform({ dir, say, signal, images: ensureTrainingImages });
  let disturbed: Disturbed | undefined;
  try {
    await using dsec = await connect({ contextFile: started.platform.contextFile });
    const { state: job } = await dsec.jobs.create('preemption', { title: 'repair a library', leaseMs: 5_000, onOwnerLost: 'pause', lifeMs: 3_600_000 });
    await dsec.jobs.startRollouts(
      job.id,
      Array.from({ length: EPISODES }, (_, i) => repairRollout(started.images, i, `episode-${i}`)),
    );
    say(`${EPISODES} episodes started in job ${job.id}`);
    disturbed = await disturb({ dsec, jobId: job.id, platform: started.platform, dir, episodes: EPISODES, say, signal });
    const trajectoryFile = join(dir, 'trajectories.jsonl');
    const episodes = await exportTrajectories(dsec, job.id, trajectoryFile);
    await dsec.jobs.stop(job.id);
    await dsec.close();
    await started.close();
    copyFileSync(trajectoryFile, join(tmpdir(), 'dsec-preemption.jsonl'));
    rmSync(dir, { recursive: true, force: true });
    const left = findLeftovers({ cgroupName: started.cgroupName, dirs: started.dirs, namespaces: disturbed.namespaces });
    printPreemption(episodes, disturbed, left, join(tmpdir(), 'dsec-preemption.jsonl'));
    return verifyPreemption(episodes, disturbed, left, EPISODES);
  } finally {
    disturbed?.stop();
    await started.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
