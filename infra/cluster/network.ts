/**
 * The hosts of a cluster on one machine: a network namespace for each Edge, joined by a bridge in a further one, to which this
 * machine has one veth. Whoever listens on `hostAddress` is reached by every Edge and by local clients, and by nobody else.
 *
 * Namespaces have no names: each is held by a process that ends with ours, and the kernel removes the namespace, its devices
 * and this machine's end of the veth with it. A crash leaves nothing to clean up.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DsecError } from '#bus/errors.ts';
import type { EdgeName } from '#bus/ids.ts';
import { CLUSTER_LIMITS } from './limits.ts';

const execute = promisify(execFile);

/** Addresses set aside for tests of networks (RFC 2544); one /24 of them per cluster. */
const NETWORK = '198.18';
const HOST_PART = 254;

export class ClusterNetwork {
  readonly hostAddress: string;
  readonly #subnet: string;
  readonly #hub: Namespace;
  readonly #nodes = new Map<EdgeName, { readonly namespace: Namespace; readonly port: string }>();

  private constructor(subnet: string, hub: Namespace) {
    this.#subnet = subnet;
    this.#hub = hub;
    this.hostAddress = `${subnet}.${HOST_PART}`;
  }

  /** `name` decides the addresses while they are free: a cluster that is started again is found where it was. */
  static async create(name: string, edges: readonly EdgeName[]): Promise<ClusterNetwork> {
    if (edges.length > CLUSTER_LIMITS.edgesMax)
      throw DsecError.of('INVALID_ARGUMENT', `${edges.length} Edges asked for; one machine carries ${CLUSTER_LIMITS.edgesMax} at most`);
    const network = new ClusterNetwork(freeSubnet(name), await Namespace.create());
    try {
      await network.#plugHost();
      for (const [index, edge] of edges.entries()) await network.#plugEdge(edge, index);
    } catch (thrown) {
      await network.close();
      throw thrown;
    }
    return network;
  }

  /** Begins the command line of a process that is to run on the Edge's host. */
  prefixOf(edge: EdgeName): string[] {
    return this.#node(edge).namespace.prefix;
  }

  /** Cuts a host off, or joins it again: its end of the cable is pulled, nobody is told. */
  async setLink(edge: EdgeName, up: boolean): Promise<void> {
    await this.#hub.ip('link', 'set', this.#node(edge).port, up ? 'up' : 'down');
  }

  async close(): Promise<void> {
    await Promise.all([this.#hub, ...[...this.#nodes.values()].map(({ namespace }) => namespace)].map((n) => n.close()));
    this.#nodes.clear();
  }

  #node(edge: EdgeName) {
    const node = this.#nodes.get(edge);
    if (!node) throw DsecError.of('NODE_NOT_FOUND', `this cluster has no Edge ${edge}`);
    return node;
  }

  async #plugHost(): Promise<void> {
    const device = `dsec-${randomBytes(4).toString('hex')}`;
    await this.#hub.ip('link', 'add', 'br0', 'type', 'bridge');
    await this.#hub.ip('link', 'set', 'br0', 'up');
    await execute('ip', ['link', 'add', device, 'type', 'veth', 'peer', 'name', 'up0', 'netns', String(this.#hub.pid)]);
    await execute('ip', ['addr', 'add', `${this.hostAddress}/24`, 'dev', device]);
    await execute('ip', ['link', 'set', device, 'up']);
    await this.#hub.ip('link', 'set', 'up0', 'master', 'br0', 'up');
  }

  async #plugEdge(edge: EdgeName, index: number): Promise<void> {
    const namespace = await Namespace.create();
    const port = `e${index + 1}`;
    this.#nodes.set(edge, { namespace, port });
    await this.#hub.ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(namespace.pid));
    await this.#hub.ip('link', 'set', port, 'master', 'br0', 'up');
    await namespace.ip('link', 'set', 'lo', 'up');
    await namespace.ip('addr', 'add', `${this.#subnet}.${index + 1}/24`, 'dev', 'eth0');
    await namespace.ip('link', 'set', 'eth0', 'up');
  }
}

/** A network namespace and the process that holds it: it waits for the end of our pipe, which also comes when we are killed. */
class Namespace {
  readonly #holder: ChildProcess;

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async create(): Promise<Namespace> {
    const ours = readlinkSync('/proc/self/ns/net');
    const holder = spawn('unshare', ['--net', 'cat'], { stdio: ['pipe', 'ignore', 'ignore'] });
    const namespace = new Namespace(holder);
    for (const until = performance.now() + CLUSTER_LIMITS.namespaceMs; namespaceOf(holder.pid) === ours; await delay(5)) {
      if (holder.exitCode === null && performance.now() < until) continue;
      holder.kill('SIGKILL');
      throw DsecError.of('HOST_UNFIT', 'no network namespace can be made here; run as root on a host that allows it');
    }
    return namespace;
  }

  get pid(): number {
    return this.#holder.pid ?? -1;
  }

  get prefix(): string[] {
    return ['nsenter', `--net=/proc/${this.pid}/ns/net`, '--'];
  }

  async ip(...args: readonly string[]): Promise<void> {
    const [command = 'nsenter', ...before] = this.prefix;
    await execute(command, [...before, 'ip', ...args]);
  }

  async close(): Promise<void> {
    if (this.#holder.exitCode !== null || this.#holder.signalCode !== null) return;
    const ended = once(this.#holder, 'exit');
    this.#holder.kill('SIGKILL');
    await ended;
  }
}

/** `unshare` has not entered its namespace while this says the same as ours. */
const namespaceOf = (pid: number | undefined): string | undefined => {
  try {
    return pid === undefined ? undefined : readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return undefined;
  }
};

const freeSubnet = (name: string): string => {
  const taken = new Set(Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => address.split('.').slice(0, 3).join('.'))));
  const first = createHash('sha256').update(name).digest().readUInt8(0);
  for (let attempt = 0; attempt < 256; attempt += 1) {
    const subnet = `${NETWORK}.${(first + attempt) % 256}`;
    if (!taken.has(subnet)) return subnet;
  }
  throw DsecError.of('HOST_UNFIT', `every network of ${NETWORK}.0.0/16 is taken on this machine`);
};
