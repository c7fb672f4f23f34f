import { cp, mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as here from '../../src/index.js';
import { builtTree } from '../support/built-program.js';

type Root = typeof here;

let other: Root;
let copy = '';

beforeAll(async () => {
  const built = await builtTree();
  // Next to the built tree, so that it finds the dependencies.
  copy = join(dirname(built), `copy-${process.pid}`);
  await mkdir(copy, { recursive: true });
  await cp(join(built, 'package.json'), join(copy, 'package.json'));
  await cp(join(built, 'dist'), join(copy, 'dist'), { recursive: true });
  other = (await import(pathToFileURL(join(copy, 'dist', 'index.js')).href)) as Root;
});
afterAll(async () => {
  await rm(copy, { recursive: true, force: true });
});

const details = { kind: 'quota', type: 'rate_limit' } as const;
/** Each class with one of its errors, created by either copy. */
const makers: Readonly<Record<string, (root: Root) => Error>> = {
  ArchiveError: (root) => new root.ArchiveError('x', { kind: 'unreadable' }),
  BlobError: (root) => new root.BlobError('x', { kind: 'missing' }),
  DeploymentError: (root) => new root.DeploymentError('x'),
  IdTakenError: (root) => new root.IdTakenError('x'),
  InputError: (root) => new root.InputError('x'),
  LiveOptionsError: (root) => new root.LiveOptionsError('x'),
  ModelError: (root) => new root.ModelError('x', details),
  NoRunError: (root) => new root.NoRunError('x'),
  NoScheduleError: (root) => new root.NoScheduleError('x'),
  NoServerError: (root) => new root.NoServerError('x'),
  NotDeliveredError: (root) => new root.NotDeliveredError('x', { mayArrive: true }),
  ParseError: (root) => new root.ParseError('x'),
  RefusedError: (root) => new root.RefusedError('x'),
  ResultLostError: (root) => new root.ResultLostError('x'),
  RunTokenError: (root) => new root.RunTokenError('x'),
  SdkCopiesError: (root) => new root.SdkCopiesError('x'),
  ToolError: (root) => new root.ToolError('x'),
  UnreadableError: (root) => new root.UnreadableError('x'),
};

interface ErrorClass {
  readonly code?: string;
  isInstance(value: unknown): boolean;
}

/** The error classes that the root exports, by name. */
const classes = new Map(
  Object.entries(here).filter((entry): entry is [string, (typeof entry)[1] & ErrorClass] =>
    entry[0].endsWith('Error'),
  ),
);

describe('errors', () => {
  test('are all exported by the root, each with its own code', async () => {
    expect([...classes.keys()].toSorted()).toEqual(
      [...Object.keys(makers), 'PerdureError'].toSorted(),
    );
    const codes = Object.values(makers).map((make) => (make(here) as here.PerdureError).code);
    expect(new Set(codes).size).toBe(codes.length);
    const source = fileURLToPath(new URL('../../src/core/errors.ts', import.meta.url));
    const table = await readFile(source, 'utf8');
    for (const [name, make] of Object.entries(makers)) {
      const { code } = make(here) as here.PerdureError;
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
