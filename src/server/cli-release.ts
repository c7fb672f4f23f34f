import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';

/** The release of the Temporal CLI that is downloaded if the machine has none. */
export const CLI_VERSION = '1.9.1';

/** The oldest tested release. It supports update-with-start and has all flags. */
const MIN_CLI_VERSION = '1.5.0';
/** The first release whose flags and database format may differ. */
const FIRST_UNKNOWN_CLI_VERSION = '2.0.0';
/** The supported releases, as text. */
export const CLI_RANGE = `${MIN_CLI_VERSION} or later, before ${FIRST_UNKNOWN_CLI_VERSION}`;

/** Returns whether perdure supports this release of the CLI. */
export function isInRange(version: string): boolean {
  return (
    compareVersions(version, MIN_CLI_VERSION) >= 0 &&
    compareVersions(version, FIRST_UNKNOWN_CLI_VERSION) < 0
  );
}

/**
 * The SHA-256 of the program `temporal` of release `CLI_VERSION`, by `process.platform` and
 * `process.arch`. For other platforms, nothing is downloaded, because perdure does not run an
 * unverified program.
 */
export const CLI_SHA256: Readonly<Record<string, string>> = {
  'linux-x64': '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  'linux-arm64': '667e9403cb2faaf439ecaa7eb7190e0d08521de6c9118da7fd26ad594281271d',
  'darwin-x64': 'd5776986d343fb789f49e4e7b6d3faca931c0877b71c6d4a7ac39dba467155cc',
  'darwin-arm64': '33c298d41f6eefebf01a28a3511f444480e939e21d3518cb0c12a4abad467c4b',
};

/** Throws unless `file` is the program of the pinned release, byte for byte. */
export async function verifyRelease(file: string): Promise<void> {
  const expected = CLI_SHA256[`${process.platform}-${process.arch}`];
  if (!expected) {
    throw new Error(`no release is pinned for ${process.platform} ${process.arch}`);
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  const found = hash.digest('hex');
  if (found === expected) return;
  throw new Error(
    `${file}: expected Temporal CLI ${CLI_VERSION} with SHA-256 ${expected}, got ${found}; ` +
      'it is not run, delete it',
  );
}

/**
 * Compares two versions such as `1.9.1` by their numbers. Returns a negative number if `a` is
 * older.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((version) => version.split(/[-+]/)[0]!.split('.').map(Number));
  for (const index of [0, 1, 2]) {
    const difference = (left![index] ?? 0) - (right![index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
