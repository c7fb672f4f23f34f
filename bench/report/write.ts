import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { format } from 'oxfmt';
import { pictures, withResults, type Measured } from './page.js';
import { withGroup, type Results } from './results.js';

const ROOT = new URL('../../', import.meta.url);
const PAGE = 'docs/benchmarks.md';
const FILES = {
  own: 'bench/results/perdure.json',
  peers: 'bench/results/peers.json',
  engines: 'bench/results/engines.json',
} as const;

/** The results that are kept in the repository. */
export function keptResults(): Measured {
  return { own: kept(FILES.own), peers: kept(FILES.peers), engines: kept(FILES.engines) };
}

function kept(name: string): Results | undefined {
  const path = new URL(name, ROOT);
  // Written by `keepResults`, and by nothing else.
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Results) : undefined;
}

/** Keeps the results of a run in the repository, in place of those of the last one. */
export function keepResults(whose: keyof typeof FILES, results: Results): void {
  write(FILES[whose], `${JSON.stringify(results, null, 1)}\n`);
}

/** Keeps the results of one group, beside what the same version has measured before. */
export function keepGroup(whose: keyof typeof FILES, group: string, results: Results): void {
  const before = kept(FILES[whose]);
  const isSame = before?.perdure === results.perdure && before.quick === results.quick;
  keepResults(whose, isSame ? withGroup(before, group, results) : results);
}

/** Returns the page and its pictures, by path, as they are written for these results. */
export async function reportFiles(measured: Measured): Promise<Readonly<Record<string, string>>> {
  const options = JSON.parse(readFileSync(new URL('.oxfmtrc.json', ROOT), 'utf8'));
  const page = readFileSync(new URL(PAGE, ROOT), 'utf8');
  const { code } = await format(PAGE, withResults(page, measured), options);
  const drawn = Object.entries(pictures(measured)).map(([path, text]) => [`docs/${path}`, text]);
  return { [PAGE]: code, ...Object.fromEntries(drawn) };
}

/** Writes the page and its pictures from the kept results. Returns what was written. */
export async function writeReport(): Promise<readonly string[]> {
  const files = Object.entries(await reportFiles(keptResults()));
  for (const [name, text] of files) write(name, text);
  return files.map(([name]) => name);
}

function write(name: string, text: string): void {
  const path = new URL(name, ROOT).pathname;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
