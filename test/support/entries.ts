import { readFileSync } from 'node:fs';

const manifest: { readonly exports: Readonly<Record<string, unknown>> } = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
);

/** The entry points of the package by the name of their file in `dist`, such as `index` or `client`. */
export const ENTRIES: readonly string[] = Object.keys(manifest.exports)
  .filter((path) => path !== './package.json')
  .map((path) => (path === '.' ? 'index' : path.slice('./'.length)));
