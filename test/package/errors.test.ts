import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as client from '../../src/client.js';
import * as root from '../../src/index.js';
import * as models from '../../src/models.js';
import * as output from '../../src/output.js';
import * as worker from '../../src/worker.js';
import { builtTree } from '../support/built-program.js';

/** What the entries export, together: each error is in the entry of those who meet it. */
const here = { ...client, ...models, ...output, ...worker, ...root };

type Exports = typeof here;

/** The files of these entries in `dist`. */
const ENTRIES = ['client', 'models', 'output', 'worker', 'index'];

let other: Exports;
let copy = '';

beforeAll(async () => {
  const built = await builtTree();
  // Next to the built tree, so that it finds the dependencies.
  copy = join(dirname(built), `copy-${process.pid}`);
  await mkdir(copy, { recursive: true });
  await cp(join(built, 'package.json'), join(copy, 'package.json'));
  await cp(join(built, 'dist'), join(copy, 'dist'), { recursive: true });
  const loaded = await Promise.all(
    ENTRIES.map(
      async (name): Promise<object> =>
        await import(pathToFileURL(join(copy, 'dist', `${name}.js`)).href),
    ),
  );
  other = Object.assign({}, ...loaded) as Exports;
});
afterAll(async () => {
  await rm(copy, { recursive: true, force: true });
});

const details = { kind: 'quota', type: 'rate_limit' } as const;
/** Each class with one of its errors, created by either copy. */
const makers: Readonly<Record<string, (from: Exports) => Error>> = {
  ArchiveError: (from) => new from.ArchiveError('x', { kind: 'unreadable' }),
  BlobError: (from) => new from.BlobError('x', { kind: 'missing' }),
  DeploymentError: (from) => new from.DeploymentError('x'),
  IdTakenError: (from) => new from.IdTakenError('x'),
  InputError: (from) => new from.InputError('x'),
  LiveOptionsError: (from) => new from.LiveOptionsError('x'),
  ModelError: (from) => new from.ModelError('x', details),
  NoRunError: (from) => new from.NoRunError('x'),
  NoScheduleError: (from) => new from.NoScheduleError('x'),
  NoServerError: (from) => new from.NoServerError('x'),
  NotDeliveredError: (from) => new from.NotDeliveredError('x', { mayArrive: true }),
  ParseError: (from) => new from.ParseError('x'),
  RefusedError: (from) => new from.RefusedError('x'),
  ResultLostError: (from) => new from.ResultLostError('x'),
  RunTokenError: (from) => new from.RunTokenError('x'),
  SdkCopiesError: (from) => new from.SdkCopiesError('x'),
  ToolError: (from) => new from.ToolError('x'),
  UnreadableError: (from) => new from.UnreadableError('x'),
};

interface ErrorClass {
  readonly code?: string;
  isInstance(value: unknown): boolean;
}

/** The error classes that these entries export, by name. */
const classes = new Map(
  Object.entries(here).filter((entry): entry is [string, (typeof entry)[1] & ErrorClass] =>
    entry[0].endsWith('Error'),
  ),
);

describe('errors', () => {
  test('are all exported by an entry, each with its own code', async () => {
    expect([...classes.keys()].toSorted()).toEqual(
      [...Object.keys(makers), 'PerdureError'].toSorted(),
    );
    const codes = Object.values(makers).map((make) => (make(here) as root.PerdureError).code);
    expect(new Set(codes).size).toBe(codes.length);
    const source = fileURLToPath(new URL('../../src/core/errors.ts', import.meta.url));
    const table = await readFile(source, 'utf8');
    for (const [name, make] of Object.entries(makers)) {
      const { code } = make(here) as root.PerdureError;
      expect(table).toMatch(new RegExp(`^ \\* \\| \`${code}\` +\\| \`${name}\``, 'm'));
      expect(make(here)).toMatchObject({ name, message: 'x' });
    }
  });

  test.each(Object.entries(makers))(
    '%s is recognized across copies of the package',
    (name, make) => {
      const foreign = make(other);
      expect(foreign).not.toBeInstanceOf(here.PerdureError);
      expect(here.PerdureError.isInstance(foreign)).toBe(true);
      for (const [each, errorClass] of classes) {
        const isSame = each === name || each === 'PerdureError';
        expect(errorClass.isInstance(foreign)).toBe(isSame);
        expect(errorClass.isInstance(make(here))).toBe(isSame);
      }
    },
  );

  test('are not confused with a subclass, or with anything else', () => {
    class MissingFile extends here.ToolError {}
    expect(here.ToolError.isInstance(new MissingFile('x'))).toBe(true);
    expect(MissingFile.isInstance(new here.ToolError('x'))).toBe(false);
    expect(MissingFile.isInstance(new other.ToolError('x'))).toBe(false);
    const lookalike = Object.assign(new Error('x'), { name: 'ToolError', code: 'tool' });
    for (const value of [null, undefined, 'tool', { code: 'tool' }, lookalike]) {
      expect(here.ToolError.isInstance(value)).toBe(false);
      expect(here.PerdureError.isInstance(value)).toBe(false);
    }
  });
});
