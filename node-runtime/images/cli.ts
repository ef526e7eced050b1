/** `dsec image …`: build, import, list, remove and collect images on this node. Needs no running platform. */
import { type Command, Option } from 'commander';
import { systemClock } from '#actors/ports/clock.ts';
import type { ImageRecord, LayerStore } from '#actors/ports/layer-store.ts';
import { LayerKind } from '#actors/ports/layer-store.ts';
import { DsecError, ERRORS } from '#bus/errors.ts';
import type { LayerDigest } from '#bus/ids.ts';
import { ImageName } from '#bus/ids.ts';
import type { TimestampMs } from '#bus/units.ts';
import { type BuildOptions, buildLayer } from './build.ts';
import { LayerCatalog } from './catalog.ts';
import { type BuildFlags, buildRequestOf, DEPENDENCIES, importRequestOf, OWNERS } from './cli/build-options.ts';
import { registerExport, registerPromote } from './cli/oci.ts';
import { formatBytes, imageTable, printJson } from './cli/output.ts';
import { createProgressView } from './cli/progress.ts';
import { collectGarbage } from './gc.ts';
import { GC_LIMITS } from './limits.ts';
import { importOci } from './oci/import.ts';
import { VARIANTS } from './sources/mmdebstrap.ts';
import { WHITEOUTS } from './sources/tar-listing.ts';
import { COMPRESSIONS } from './tools/mkfs.ts';

export type ImageCommandsContext = {
  /** Lends the layer store of the configuration for one command. */
  readonly withStore: <T>(work: (store: LayerStore) => Promise<T>) => Promise<T>;
  /** Layers that live sandboxes of this store stand on; rejects when that cannot be known. */
  readonly liveLayers: () => Promise<ReadonlySet<LayerDigest>>;
};

export const registerImageCommands = (program: Command, context: ImageCommandsContext): void => {
  const image = program.command('image').description('build and manage the images that sandboxes are made of');
  registerBuild(image, context);
  registerImport(image, context);
  registerList(image, context);
  registerRemove(image, context);
  registerVerify(image, context);
  registerCollect(image, context);
  registerExport(image, context.withStore);
  registerPromote(image, context.withStore);
};

const withCommonFlags = (command: Command): Command =>
  command
    .addOption(new Option('--kind <kind>', 'place in the stack').choices(LayerKind.options))
    .addOption(new Option('--owner <owner>', 'whose the files are; default keep for a base, root otherwise').choices(OWNERS))
    .addOption(new Option('--compress <how>', 'compression of the image; default none').choices(COMPRESSIONS))
    .option('--prefix <path>', 'where in the sandbox the files go, like /workspace/project')
    .option('--strip-components <n>', 'archives: leading path components to drop')
    .addOption(new Option('--whiteouts <how>', 'archives: what names beginning with .wh. mean').choices(WHITEOUTS))
    .option('--json', 'print the record as JSON');

const registerBuild = (image: Command, context: ImageCommandsContext): void => {
  withCommonFlags(
    image
      .command('build')
      .description('build an image and give it a name')
      .argument('<name>', 'name or name:tag, with any number of path/ before it')
      .option('--from-dir <directory>', 'from a directory')
      .option('--from-tar <file>', 'from a tar archive, plain or compressed')
      .option('--from-npm <package@version>', 'from a package of the npm registry')
      .option('--oci <path>', 'from an OCI image layout, a directory or an archive of one')
      .option('--mmdebstrap', "a Debian root file system, from this host's mirrors"),
  )
    .option('--suite <codename>', "mmdebstrap: release; default this host's")
    .addOption(new Option('--variant <variant>', 'mmdebstrap: packages to begin with; default minbase').choices(VARIANTS))
    .option('--include <packages>', 'mmdebstrap: further packages, comma separated', (value: string) => value.split(',').filter((name) => name !== ''))
    .option('--slim', 'mmdebstrap: without documentation, manual pages and translations')
    .addOption(new Option('--dependencies <which>', 'npm: dependencies to install beside the package; default none').choices(DEPENDENCIES))
    .addHelpText(
      'after',
      `
Examples:
  dsec image build debian --mmdebstrap --include nodejs,git --slim
  dsec image build project:1 --from-tar project.tar.gz --strip-components 1 --prefix /workspace/project
  dsec image build tools --kind toolkit --from-dir ./tools
  dsec image build debian:13 --oci debian.tar
  dsec image build source-map --from-npm source-map@0.1.43 --dependencies production`,
    )
    .action(async (name: string, flags: BuildFlags & { json?: true; oci?: string }) => {
      if (flags.oci === undefined) return runBuild(context, name, flags.json, (store, options) => buildLayer(store, buildRequestOf(name, flags), options));
      const { oci, ...others } = flags;
      const other = Object.keys(others).find((key) => key !== 'json');
      if (other) throw DsecError.of('INVALID_ARGUMENT', `--oci takes everything from the image; leave --${other} away`);
      return runBuild(context, name, flags.json, (store, options) => importOci(store, name, oci, options));
    });
};

const registerImport = (image: Command, context: ImageCommandsContext): void => {
  withCommonFlags(
    image
      .command('import')
      .description('take in a directory, an archive or an EROFS image as a base (or what --kind says)')
      .argument('<path>', 'directory, tar archive or EROFS image')
      .argument('<name>', 'name or name:tag'),
  )
    .addHelpText(
      'after',
      `
Examples:
  dsec image import rootfs.tar.zst debian:13
  dsec image import layer.tar team/patch --kind workspace --whiteouts oci
  dsec image import tools.erofs tools --kind toolkit`,
    )
    .action(async (path: string, name: string, flags: BuildFlags & { json?: true }) => {
      const request = await importRequestOf(path, name, flags);
      return runBuild(context, name, flags.json, (store, options) => buildLayer(store, request, options));
    });
};

const registerList = (image: Command, context: ImageCommandsContext): void => {
  image
    .command('ls')
    .description('list images by name')
    .option('--json', 'print records as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image ls\n  dsec image ls --json | jq -r ".[].digest"')
    .action(async (flags: { json?: true }) => {
      const records = await context.withStore((store) => store.names.list());
      if (flags.json) printJson(records);
      else process.stdout.write(`${records.length === 0 ? 'no images; build one with "dsec image build"' : imageTable(records, systemClock.now())}\n`);
    });
};

const registerRemove = (image: Command, context: ImageCommandsContext): void => {
  image
    .command('rm')
    .description('remove names; the layers go at the next "dsec image gc", sandboxes that use them are not disturbed')
    .argument('<names...>')
    .option('--json', 'print the removed records as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image rm project:1\n  dsec image rm old-a old-b && dsec image gc')
    .action(async (names: string[], flags: { json?: true }) => {
      const records = await context.withStore(async (store) => {
        const catalog = new LayerCatalog(store);
        const found = names.map((name) => catalog.record(name)); // all or none
        for (const record of found) await store.names.delete(ImageName.parse(record.name));
        return found;
      });
      if (flags.json) printJson(records);
      else for (const record of records) process.stdout.write(`removed ${record.name} (${record.digest})\n`);
    });
};

const registerVerify = (image: Command, context: ImageCommandsContext): void => {
  image
    .command('verify')
    .description('read layers whole and compare them with their digests; all named images when none is given')
    .argument('[names...]')
    .option('--json', 'print the results as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image verify\n  dsec image verify debian')
    .action(async (names: string[], flags: { json?: true }) => {
      const results = await context.withStore(async (store) => {
        const catalog = new LayerCatalog(store);
        const records = names.length > 0 ? names.map((name) => catalog.record(name)) : await store.names.list();
        const verified = [];
        for (const { name, digest } of records) verified.push({ name, digest, result: await store.verify(digest) });
        return verified;
      });
      if (flags.json) printJson(results);
      else for (const { name, digest, result } of results) process.stdout.write(`${result.padEnd(7)} ${name} ${digest}\n`);
      if (results.some(({ result }) => result !== 'intact')) process.exitCode = ERRORS.LAYER_NOT_FOUND.exit;
    });
};

const registerCollect = (image: Command, context: ImageCommandsContext): void => {
  image
    .command('gc')
    .description('remove layers that no name and no live sandbox uses')
    .option('--dry-run', 'only say what would be removed')
    .option('--grace <minutes>', 'spare layers younger than this', String(GC_LIMITS.graceMs / 60_000))
    .option('--json', 'print the report as JSON')
    .addHelpText('after', '\nExamples:\n  dsec image gc --dry-run\n  dsec image gc --grace 0')
    .action(async (flags: { dryRun?: true; grace: string; json?: true }) => {
      if (!/^\d{1,6}(\.\d+)?$/.test(flags.grace)) throw DsecError.of('INVALID_ARGUMENT', `--grace ${flags.grace} is not a number of minutes`);
      const report = await context.withStore((store) =>
        collectGarbage(store, {
          liveLayers: context.liveLayers,
          // A whole millisecond later than now, so that no grace means none.
          now: (systemClock.now() + 1) as TimestampMs,
          graceMs: Number(flags.grace) * 60_000,
          ...(flags.dryRun ? { dryRun: true } : {}),
        }),
      );
      if (flags.json) return printJson(report);
      for (const layer of report.removed)
        process.stdout.write(`${flags.dryRun ? 'would remove' : 'removed'} ${layer.digest} ${formatBytes(layer.sizeBytes)}\n`);
      const spared = report.spared.length > 0 ? `, ${report.spared.length} too young` : '';
      process.stdout.write(
        `${flags.dryRun ? 'would free' : 'freed'} ${formatBytes(report.freedBytes)} in ${report.removed.length} layers; ${report.keptCount} in use${spared}\n`,
      );
    });
};

/** Ctrl-C cancels, and the build tidies up before the command ends. */
const runBuild = async (
  context: ImageCommandsContext,
  name: string,
  json: true | undefined,
  build: (store: LayerStore, options: BuildOptions) => Promise<ImageRecord>,
): Promise<void> => {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  const progress = createProgressView(name);
  try {
    const record = await context.withStore((store) => build(store, { signal: interrupted.signal, onProgress: (event) => progress.show(event) }));
    progress.succeed(`${record.name}: ${record.kind} ${record.digest}, ${formatBytes(record.sizeBytes)}`);
    if (json) printJson(record);
  } catch (error) {
    progress.fail();
    throw error;
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
  }
};
