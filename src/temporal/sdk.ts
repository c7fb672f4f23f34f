import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { SdkCopiesError } from '../core/errors.js';

/** The packages of the SDK that keep state or classes of their own. */
const SDK_MODULE =
  /^(.*[\\/]@temporalio[\\/](?:activity|client|common|worker|workflow))[\\/]lib[\\/]index\.js$/;

const own = createRequire(import.meta.url);

/** Returns the version of Temporal's SDK that perdure runs with. */
export function sdkVersion(): string {
  return versionAt(dirnameOf(own.resolve('@temporalio/worker')));
}

/**
 * Throws a `SdkCopiesError` if this process has loaded a package of the SDK from two places. One
 * copy does not recognize the objects of the other, and the tasks of a run would fail indefinitely.
 */
export function assertOneSdk(loaded: readonly string[] = Object.keys(own.cache)): void {
  const first = new Map<string, string>();
  for (const folder of loaded.flatMap((path) => SDK_MODULE.exec(path)?.[1] ?? [])) {
    const name = folder.slice(folder.lastIndexOf('@temporalio'));
    const other = first.get(name);
    if (other !== undefined && other !== folder) throw twoCopies(name, [other, folder]);
    first.set(name, folder);
  }
}

/**
 * Throws a `SdkCopiesError` if a workflows file resolves a different copy of
 * `@temporalio/workflow` than perdure: a bundle of both would contain two.
 */
export function assertSameSdk(workflowsPath: string): void {
  const name = '@temporalio/workflow';
  const theirs = resolveFrom(workflowsPath, name);
  const ours = own.resolve(name);
  if (theirs !== null && theirs !== ours) {
    throw twoCopies(name, [dirnameOf(ours), dirnameOf(theirs)]);
  }
}

/** Returns the path of a package; null if only the bundler of the file can find it. */
function resolveFrom(file: string, name: string): string | null {
  try {
    return createRequire(file).resolve(name);
  } catch {
    return null;
  }
}

function twoCopies(name: string, folders: readonly string[]): SdkCopiesError {
  const places = folders.map((folder) => `${folder} (${versionAt(folder)})`);
  return new SdkCopiesError(
    `Temporal's SDK is installed twice: expected one copy of ${name}, got ${places.join(' and ')}. ` +
      'Install one version of all @temporalio packages that perdure supports as a peer, then run ' +
      '`npm dedupe`; `npm ls @temporalio/common` shows which package depends on which copy.',
  );
}

/** The folder of a package, from the path of its main module. */
function dirnameOf(main: string): string {
  return SDK_MODULE.exec(main)?.[1] ?? main;
}

function versionAt(folder: string): string {
  try {
    const manifest: unknown = JSON.parse(readFileSync(`${folder}/package.json`, 'utf8'));
    if (typeof manifest === 'object' && manifest !== null && 'version' in manifest) {
      return String(manifest.version);
    }
  } catch {
    // The path alone must suffice.
  }
  return 'unknown version';
}

const nothing = (): void => undefined;

/** A logger of the SDK that writes nothing. */
export const SILENT_LOGGER = {
  log: nothing,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
};
