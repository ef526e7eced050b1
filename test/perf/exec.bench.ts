/** `exec`: /bin/true through the SDK in a live sandbox, against fork + exec on the host. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from '#sdk/mod.ts';
import { startTestPlatform } from '#test/helpers/platform.ts';
import { median, percentile, runBench, timed } from './harness.ts';

const ROUNDS = 1_000;
const WARM_UP = 100;

/** Time of one fork + exec + wait of /bin/true on the host, measured inside a small C loop: no interpreter in it. */
const forkExecMs = (dir: string): number => {
  const source = join(dir, 'fork.c');
  writeFileSync(
    source,
    `#include <spawn.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <time.h>\n#include <unistd.h>\n
static int cmp(const void *a, const void *b) { double x = *(double *)a - *(double *)b; return x < 0 ? -1 : x > 0; }
int main(void) { static double ms[500]; for (int i = 0; i < 500; i++) { struct timespec s, e; clock_gettime(CLOCK_MONOTONIC, &s);
  pid_t pid = fork(); if (pid == 0) { execl("/bin/true", "true", (char *)0); _exit(127); } waitpid(pid, 0, 0);
  clock_gettime(CLOCK_MONOTONIC, &e); ms[i] = (e.tv_sec - s.tv_sec) * 1e3 + (e.tv_nsec - s.tv_nsec) / 1e6; }
  qsort(ms, 500, sizeof *ms, cmp); printf("%f\\n", ms[250]); }\n`,
  );
  spawnSync('gcc', ['-O2', '-o', join(dir, 'fork'), source], { stdio: 'inherit' });
  return Number(spawnSync(join(dir, 'fork'), { encoding: 'utf8' }).stdout);
};

await runBench('exec', { execP50Ms: '≤ 3' }, async (say) => {
  const test = await startTestPlatform({ logLevel: 'warn' });
  try {
    const dsec = await connect({ contextFile: test.platform.contextFile });
    await using box = await dsec.runContainer({ image: 'small' });
    const samples: number[] = [];
    for (let i = 0; i < WARM_UP + ROUNDS; i += 1) {
      const { ms, value } = await timed(() => box.exec(['/bin/true']));
      if (value.exitCode !== 0) throw new Error(`exit ${value.exitCode}`);
      if (i >= WARM_UP) samples.push(ms);
    }
    const fork = forkExecMs(test.dir);
    say(`fork + exec on the host: ${fork.toFixed(3)} ms`);
    await box.stop();
    await dsec.close();
    return { execP50Ms: median(samples), execP99Ms: percentile(samples, 0.99), vsFork: median(samples) / fork, forkExecMs: fork };
  } finally {
    await test.close();
  }
});
