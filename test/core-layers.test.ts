import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { importsOf, sourceFiles } from '../scripts/walls/imports.js';
import { CORE_LAYERS } from '../scripts/walls/table.js';

const SRC = join(new URL('../', import.meta.url).pathname, 'src');
const IMPORTS = importsOf(SRC);

/** Returns the folder of a file of the core, as `CORE_LAYERS` names it. */
function layerOf(path: string): string {
  const [, folder = '.', ...below] = path.split('/');
  return below.length === 0 ? '.' : folder;
}

describe('the layers of the core', () => {
  const inside = IMPORTS.filter(
    ({ from, to }) => from.startsWith('core/') && to.startsWith('core/'),
  );
  const order = CORE_LAYERS.map(({ folder }) => folder);

  test('name every folder of the core, and no other', () => {
    const folders = sourceFiles(SRC).filter((path) => path.startsWith('core/'));
    expect([...new Set(folders.map(layerOf))].toSorted()).toEqual(order.toSorted());
  });

  test('import only layers before them, so no two folders import each other', () => {
    const upward = inside.filter(
      ({ from, to }) => order.indexOf(layerOf(to)) > order.indexOf(layerOf(from)),
    );
    expect(inside.length).toBeGreaterThan(200);
    expect(upward.map(({ from, to }) => `${from} -> ${to}`)).toEqual([]);
  });

  test('let the loop of an agent be read without graphs and plans, which it knows by their hooks', () => {
    const loop = ['reduce', 'on-reply', 'complete-batch', 'control', 'next-action'];
    const known = inside.filter(
      ({ from, to }) =>
        loop.some((name) => from === `core/run/${name}.ts`) &&
        ['graph', 'plan'].includes(layerOf(to)),
    );
    expect(new Set(known.map(({ to }) => to))).toEqual(new Set(['core/graph/hooks.ts']));
  });
});
