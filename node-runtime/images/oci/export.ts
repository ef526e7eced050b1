/**
 * Writes an image, or the whole stack of a snapshot, as an OCI image layout: one layer that holds the tree as a sandbox sees it. So
 * deletions, opaque and renamed directories need no marks. Names that OCI gives a meaning to are refused by path, never changed.
 * @paper §6.1
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { LayerStore } from '#actors/ports/layer-store.ts';
import { DsecError } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import { dataFilesOf } from '../data-files.ts';
import { bringHere } from '../local.ts';
import { runTool } from '../tools/run-tool.ts';
import { MEDIA, ociArchitecture } from './layout.ts';
import { MERGE_SCRIPT, RESERVED_EXIT } from './merge.sh.ts';

export type OciExport = {
  /** What people call it, for the layout's own record. */
  readonly reference: string;
  /** Lowest first. */
  readonly layers: readonly LayerDigest[];
  /** A directory that does not exist yet, or with `archive` a tar file. */
  readonly target: string;
  readonly form: 'dir' | 'tar';
  readonly createdAt: Date;
  readonly signal?: AbortSignal | undefined;
};
/** `omitted`: sockets, which no archive holds. */
export type OciExported = { readonly manifestDigest: string; readonly sizeBytes: number; readonly omitted: readonly string[] };

/** UNPORTABLE_FILE names a path; FILE_EXISTS when the target is there; NO_SPACE, CANCELLED. Leaves nothing when it fails. */
export const exportOci = async (store: LayerStore, asked: OciExport): Promise<OciExported> => {
  const order = { ...asked, target: resolve(asked.target) }; // the tree is packed from another directory
  if (await stat(order.target).catch(() => null)) throw DsecError.of('FILE_EXISTS', `${order.target} is there already; remove it, or export to another path`);
  const aside = `${order.target}.partial`;
  await rm(aside, { recursive: true, force: true });
  try {
    const layout = order.form === 'dir' ? aside : `${aside}.d`;
    const exported = await writeLayout(store, order, layout);
    if (order.form === 'tar') {
      await runTool({
        command: ['tar', '--create', '--sort=name', `--file=${aside}`, `--directory=${layout}`, '.'],
        doing: `write ${order.target}`,
        signal: order.signal,
      });
      await rm(layout, { recursive: true });
    }
    await rename(aside, order.target);
    return exported;
  } finally {
    await Promise.all([aside, `${aside}.d`].map((path) => rm(path, { recursive: true, force: true })));
  }
};

const writeLayout = async (store: LayerStore, order: OciExport, layout: string): Promise<OciExported> => {
  const blobs = join(layout, 'blobs/sha256');
  await mkdir(blobs, { recursive: true });
  const archive = join(blobs, 'layer.partial');
  const omitted = await packMerged(store, order, archive);
  const layer = await digestOfFile(archive);
  await rename(archive, join(blobs, layer.hex));

  const put = async (mediaType: string, content: object) => {
    const bytes = Buffer.from(JSON.stringify(content));
    const hex = createHash('sha256').update(bytes).digest('hex');
    await writeFile(join(blobs, hex), bytes);
    return { mediaType, digest: `sha256:${hex}`, size: bytes.byteLength };
  };
  const platform = { architecture: ociArchitecture(), os: 'linux' };
  const created = order.createdAt.toISOString();
  const config = await put(MEDIA.config, {
    created,
    ...platform,
    config: {},
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer.hex}`] },
    history: [{ created, created_by: `dsec image export ${order.reference}` }],
  });
  const layers = [{ mediaType: MEDIA.layer, digest: `sha256:${layer.hex}`, size: layer.sizeBytes }];
  const manifest = await put(MEDIA.manifest, { schemaVersion: 2, mediaType: MEDIA.manifest, config, layers });
  const named = { ...manifest, platform, annotations: { 'org.opencontainers.image.ref.name': order.reference } };
  await writeFile(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: MEDIA.index, manifests: [named] }));
  await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return { manifestDigest: manifest.digest, sizeBytes: layer.sizeBytes, omitted };
};

/** The merged tree as an archive; answers with the sockets it left out. */
const packMerged = async (store: LayerStore, { reference, layers, signal }: OciExport, archive: string): Promise<string[]> => {
  const work = await mkdtemp(join(tmpdir(), 'dsec-oci-'));
  try {
    const list = join(work, 'layers');
    for (const digest of layers) await bringHere(store, digest, signal);
    const lines = layers.map((digest) => [digest, ...dataFilesOf(store.pathOf(digest))].map((one) => store.pathOf(one)).join('\t'));
    await writeFile(list, `${lines.join('\n')}\n`);
    const output = await runTool({
      command: ['unshare', '--mount', '--propagation', 'private', 'sh', '-euc', MERGE_SCRIPT, 'merge', work, list, archive],
      program: 'tar',
      doing: `export ${reference}`,
      collect: true,
      signal,
      explain: ({ ending, output: said }) => (ending === `exit ${RESERVED_EXIT}` ? reserved(reference, said) : undefined),
    });
    return output.split('\n').flatMap((line) => (line.startsWith('socket .') ? [line.slice('socket .'.length)] : []));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
};

const reserved = (reference: string, said: string): DsecError => {
  const path = /reserved \.(.*)/s.exec(said)?.[1]?.trimEnd() ?? '?';
  return DsecError.of(
    'UNPORTABLE_FILE',
    `${reference}: ${path} cannot be exported: in OCI layers names that begin with .wh. delete other files; rename or remove it`,
    {
      details: { path },
    },
  );
};

const digestOfFile = async (path: string): Promise<{ readonly hex: string; readonly sizeBytes: number }> => {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for await (const part of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    hash.update(part);
    sizeBytes += part.byteLength;
  }
  return { hex: hash.digest('hex'), sizeBytes };
};
