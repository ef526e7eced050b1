/** Public face of the images module. */
export { type BuildOptions, type BuildRequest, buildLayer, type ImageSource } from './build.ts';
export { LayerCatalog } from './catalog.ts';
export { collectGarbage, type GcReport } from './gc.ts';
export { type ImageMounter, ImageMounts } from './mounts.ts';
export { fetchNpmPackage } from './sources/npm.ts';
export type { BuildProgress } from './sources/source.ts';
