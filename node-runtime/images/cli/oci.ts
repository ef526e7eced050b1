/** `dsec image export` and `promote`, and OCI images as a source of `dsec image build`. */
import { type Command, Option } from 'commander';
import { systemClock } from '#actors/ports/clock.ts';
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';
import { LayerKind } from '#actors/ports/layer-store.ts';
import { invalid } from '#bus/envelope.ts';
import { DsecError } from '#bus/errors.ts';
import { ImageName } from '#bus/ids.ts';
import { isReservedName, stackOf } from '../../snapshots/names.ts';
import { LayerCatalog } from '../catalog.ts';
import { exportOci } from '../oci/export.ts';
import type { ImageCommandsContext } from '../cli.ts';
import { formatBytes, printJson } from './output.ts';

/** A snapshot may be named as `@PROJECT/NAME`, as it stands in the catalogue otherwise. */
const recordOf = (store: LayerStore, reference: string): ImageRecord =>
  new LayerCatalog(store).record(reference.startsWith('@') ? `snapshots/${reference.slice(1)}` : reference);

export const registerExport = (image: Command, withStore: ImageCommandsContext['withStore']): void => {
  image
    .command('export')
    .description('write an image or snapshot as an OCI image')
    .argument('<reference>', 'name of an image, or @PROJECT/SNAPSHOT')
    .argument('<target>', 'path that does not exist yet')
    .addOption(new Option('--oci <form>', 'a directory, or one archive of it').choices(['dir', 'tar']).default('dir'))
    .option('--json', 'print the result as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image export debian ./debian-oci\n  dsec image export @default/fixed-deps fixed.tar --oci tar\n')
    .action(async (reference: string, target: string, flags: { oci: 'dir' | 'tar'; json?: true }) => {
      const interrupted = new AbortController();
      const interrupt = (): void => interrupted.abort();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
      try {
        const exported = await withStore((store) => {
          const record = recordOf(store, reference);
          const createdAt = new Date(record.createdAt);
          return exportOci(store, { reference, layers: stackOf(record), target, form: flags.oci, createdAt, signal: interrupted.signal });
        });
        if (flags.json) return printJson(exported);
        for (const path of exported.omitted) process.stderr.write(`left out ${path}: a socket, which no archive holds\n`);
        process.stdout.write(`${target}: ${exported.manifestDigest}, ${formatBytes(exported.sizeBytes)}\n`);
      } finally {
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
      }
    });
};

export const registerPromote = (image: Command, withStore: ImageCommandsContext['withStore']): void => {
  image
    .command('promote')
    .description('give the layer of a snapshot a name of its own, to stand above any base')
    .argument('<snapshot>', '@PROJECT/SNAPSHOT')
    .argument('<name>', 'name or name:tag')
    .addOption(new Option('--kind <kind>', 'place in the stack').choices(LayerKind.options).default('workspace'))
    .option('--json', 'print the record as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image promote @default/fixed-deps repo/deps:1\n  dsec run -w repo/deps:1 debian -- make test\n')
    .action(async (reference: string, name: string, flags: { kind: LayerKind; json?: true }) => {
      const record = await withStore((store) => promote(store, reference, name, flags.kind));
      if (flags.json) printJson(record);
      else process.stdout.write(`${record.name}: ${record.kind} ${record.digest}, ${formatBytes(record.sizeBytes)}\n`);
    });
};

export const promote = async (store: LayerStore, reference: string, name: string, kind: LayerKind): Promise<ImageRecord> => {
  const given = ImageName.safeParse(name);
  if (!given.success) throw invalid('INVALID_ARGUMENT', `image name ${JSON.stringify(name.slice(0, 100))}`, given.error);
  if (isReservedName(name)) throw DsecError.of('INVALID_ARGUMENT', `image name ${name}: names below snapshots/ are given by the platform; choose another`);
  const { digest, sizeBytes, source } = recordOf(store, reference);
  await store.renew(digest);
  const record: ImageRecord = { name: given.data, digest, kind, sizeBytes, createdAt: systemClock.now(), source };
  await store.names.set(record);
  return record;
};
