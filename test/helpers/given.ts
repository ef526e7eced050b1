/**
 * The hooks of a file whose tests share one platform, cluster or control plane: started before the first test, ended after the last,
 * whatever became of them. `begin` takes it with a client of its owner, and prepares what else the tests share.
 */
import { afterAll, beforeAll } from 'vitest';
import { connect, type DsecClient } from '#sdk/mod.ts';
import { startTestCluster, type TestCluster, type TestClusterOptions } from './cluster.ts';
import { type ControlPlane, type ControlPlaneOptions, startControlPlane } from './control-plane.ts';
import { startTestPlatform, type TestPlatform, type TestPlatformOptions } from './platform.ts';

type Given<Host> = { readonly host: Host; readonly dsec: DsecClient };
type Begin<Host> = (given: Given<Host>) => unknown;

export const givenPlatform = (options: TestPlatformOptions, begin: Begin<TestPlatform>): void =>
  given(
    () => startTestPlatform(options),
    ({ platform }) => connect({ contextFile: platform.contextFile }),
    begin,
  );

export const givenCluster = (options: TestClusterOptions, begin: Begin<TestCluster>): void =>
  given(
    () => startTestCluster(options),
    ({ cluster }) => connect({ contextFile: cluster.contextFile }),
    begin,
  );

export const givenControlPlane = (options: ControlPlaneOptions, begin: Begin<ControlPlane>): void =>
  given(
    () => startControlPlane(options),
    (plane) => plane.connect(),
    begin,
  );

const given = <Host extends { close(): Promise<void> }>(
  start: () => Promise<Host>,
  connectTo: (host: Host) => Promise<DsecClient>,
  begin: Begin<Host>,
): void => {
  let host: Host | undefined;
  let dsec: DsecClient | undefined;
  beforeAll(async () => {
    host = await start();
    dsec = await connectTo(host);
    await begin({ host, dsec });
  });
  afterAll(async () => {
    await dsec?.close();
    await host?.close();
  });
};
