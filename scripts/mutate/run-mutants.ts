// Tries each mutant in one process. The modules are loaded once, and a switch activates a mutant.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import type { Mutant } from './mutants.js';
import { mutation } from './switch.js';
import { testFiles } from './targets.js';
import type { FoundTest } from './vitest-shim.js';

/** Minutes after which no further mutant is tried. */
const MINUTES = Number(process.env['MUTATE_MINUTES'] ?? 20);
/** The share of mutants that the tests have to detect, in percent. */
const GOAL = 95;
/** A test that takes longer than this is left out, in ms. */
const SLOW_MS = 2_000;

/**
 * Mutants of constants are tried on the tests that are faster than this, because all tests reach
 * them.
 */
const STATIC_MS = 300;

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A test and its result with the original code. */
interface Known extends FoundTest {
  readonly ms: number;
  readonly reaches: ReadonlySet<number>;
  readonly steps: number;
}

async function load(): Promise<FoundTest[]> {
  vi.resetModules();
  const { found } = await import('./vitest-shim.js');
  for (const file of testFiles(ROOT)) await import(/* @vite-ignore */ file);
  return [...found];
}

/** Returns the error of a test, or null if it passes. */
async function fails({ body }: FoundTest): Promise<unknown> {
  try {
    await body();
    return null;
  } catch (error) {
    return error ?? new Error('it failed');
  }
}

async function measure(tests: readonly FoundTest[]): Promise<readonly Known[]> {
  const known: Known[] = [];
  for (const each of tests) {
    mutation.reached = new Set();
    mutation.left = 1e9;
    const from = performance.now();
    const error = await fails(each);
    if (error !== null) {
      process.stdout.write(`left out, because it fails without a mutant: ${each.name}\n`);
      continue;
    }
    const ms = performance.now() - from;
    known.push({ ...each, ms, reaches: mutation.reached, steps: 1e9 - mutation.left });
  }
  return known.filter(({ ms }) => ms <= SLOW_MS).toSorted((one, other) => one.ms - other.ms);
}

async function isNoticed(tests: readonly Known[]): Promise<boolean> {
  for (const each of tests) {
    mutation.left = 20 * each.steps + 10_000;
    if ((await fails(each)) !== null) return true;
  }
  return false;
}

/** Reloads the modules, so that the active mutant takes effect. */
async function isNoticedWhenLoaded(known: readonly Known[]): Promise<boolean> {
  mutation.left = 1e9;
  const before = new Map(known.map((each) => [each.name, each]));
  try {
    const again = (await load()).flatMap(({ name, body }) => {
      const measured = before.get(name);
      return measured === undefined || measured.ms > STATIC_MS ? [] : [{ ...measured, body }];
    });
    return await isNoticed(again);
  } catch {
    return true;
  }
}

test('mutants', async () => {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- written by the configuration
  const mutants = JSON.parse(readFileSync(process.env['MUTANTS'] ?? '', 'utf8')) as Mutant[];
  const known = await measure(await load());
  const until = Date.now() + MINUTES * 60_000;
  const survivors: Mutant[] = [];
  let noticed = 0;
  let untried = 0;
  for (const mutant of mutants.toSorted(
    (one, other) => Number(one.isStatic) - Number(other.isStatic),
  )) {
    if (Date.now() > until) {
      untried += 1;
      continue;
    }
    mutation.active = mutant.id;
    const isKilled = mutant.isStatic
      ? await isNoticedWhenLoaded(known)
      : await isNoticed(known.filter(({ reaches }) => reaches.has(mutant.id)));
    mutation.active = null;
    if (isKilled) noticed += 1;
    else survivors.push(mutant);
  }
  const tried = mutants.length - untried;
  const lines = survivors
    .toSorted((one, other) => one.id - other.id)
    .map(({ file, line, what }) => `${file}:${line}  ${what}`);
  const score = `${noticed} of ${tried} mutants noticed: ${((100 * noticed) / tried).toFixed(1)} %`;
  const rest = untried > 0 ? [`${untried} not tried: the time was up`] : [];
  const report = [...lines, score, ...rest].join('\n');
  const file = process.env['MUTATE_REPORT'];
  if (file !== undefined) writeFileSync(file, `${report}\n`);
  process.stdout.write(`${report}\n`);
  expect((100 * noticed) / tried).toBeGreaterThanOrEqual(GOAL);
});
