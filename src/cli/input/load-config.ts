import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { relative, resolve } from 'node:path';
import type { FilePermissions } from '../../agents/files-agent.js';
import type { Config } from '../../config.js';
import { secretNamesOf } from '../../worker/secret-names.js';
import { learnSecrets } from '../../secrets/known.js';
import { UsageError } from '../exit-codes.js';

/** Looked for in the working directory, in this order. */
export const CONFIG_NAMES: readonly string[] = [
  'perdure.config.ts',
  'perdure.config.js',
  'perdure.config.mjs',
];

export interface ConfigPlace {
  /**
   * `--config`; default: the first of the usual names in `folder` that exists. False (`--no-config`):
   * none, whatever exists.
   */
  readonly file?: string | false | undefined;
  /** The working directory: where relative names begin, and root of the built-in agent. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** What the built-in agent may do; an agent in a file has permissions of its own. */
  readonly permissions?: FilePermissions;
}

/**
 * The configuration: of the named file, else of the usual one, else the built-in agent `files`.
 * Throws a `UsageError` that names file and cure.
 */
export async function loadConfig(place: ConfigPlace): Promise<Config> {
  const file = configFile(place);
  const { folder, env, permissions = {} } = place;
  if (file === null) {
    const [{ filesAgent }, { defineConfig }] = await Promise.all([
      import('../../agents/files-agent.js'),
      import('../../config.js'),
    ]);
    return defineConfig({ agents: [filesAgent(folder, env, permissions)] });
  }
  if (Object.keys(permissions).length === 0) return await readConfig(file, place);
  throw new UsageError(
    '--write, --allow-write, --allow-read: expected the built-in agent, got the configuration ' +
      `${relative(folder, file)}; use fileTools({ write: true }) there, or add --no-config`,
  );
}

/** Absolute path of the configuration file; null when the built-in configuration holds. */
export function configFile({ file, folder }: ConfigPlace): string | null {
  if (file === false) return null;
  if (file === undefined) {
    const found = CONFIG_NAMES.map((name) => resolve(folder, name)).find((path) =>
      existsSync(path),
    );
    return found ?? null;
  }
  const path = resolve(folder, file);
  if (existsSync(path)) return path;
  throw new UsageError(
    `--config ${file}: there is no such file. Name one that exists, or leave it out to use ` +
      `${CONFIG_NAMES.join(', ')} or the built-in agent.`,
  );
}

async function readConfig(file: string, { folder, env }: ConfigPlace): Promise<Config> {
  const name = relative(folder, file);
  const loaded = await importConfig(file, name);
  if (!Object.hasOwn(loaded, 'default')) {
    throw new UsageError(
      `${name} has no default export. End it with: export default defineConfig({ agents: [...] });`,
    );
  }
  const { defineConfig } = await import('../../config.js');
  const value = 'default' in loaded ? loaded.default : undefined;
  if (typeof value !== 'object' || value === null) {
    throw new UsageError(
      `${name}: its default export is ${value === null ? 'null' : typeof value}, no configuration. ` +
        'Give defineConfig({ agents: [...] }).',
    );
  }
  try {
    // What defineConfig made passes again; what it did not make is checked here.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- defineConfig checks it
    const config = defineConfig(value as Config);
    learnSecrets({ env, names: secretNamesOf(config) });
    return config;
  } catch (error) {
    throw asUsageError(name, error);
  }
}

/** Without a build step; `perdure` is this very installation, so that nothing exists twice. */
async function importConfig(file: string, name: string): Promise<object> {
  const { createJiti } = await import('jiti');
  const jiti = createJiti(file, {
    // Its cache lies in the machine's folder for temporary files, where another user may put code of theirs.
    fsCache: false,
    virtualModules: {
      perdure: whenWanted(() => import('../../index.js')),
      'perdure/output': whenWanted(() => import('../../output.js')),
      'perdure/tools': whenWanted(() => import('../../tools.js')),
      'perdure/workflow': whenWanted(() => import('../../workflow.js')),
      'perdure/testing': whenWanted(() => import('../../testing.js')),
      ...(!canResolve('zod', file) && { zod: whenWanted(() => import('zod')) }),
    },
  });
  try {
    return await jiti.import<object>(file);
  } catch (error) {
    throw asUsageError(name, error);
  }
}

/** jiti awaits what it imports: this way a door is only loaded when somebody goes through it. */
function whenWanted(load: () => Promise<object>): PromiseLike<object> {
  return {
    // oxlint-disable-next-line unicorn/no-thenable -- being awaited is the point
    then: (resolved, rejected) => load().then(resolved, rejected),
  };
}

function canResolve(module: string, from: string): boolean {
  try {
    createRequire(from).resolve(module);
    return true;
  } catch {
    return false;
  }
}

function asUsageError(name: string, error: unknown): UsageError {
  const message = error instanceof Error ? error.message : String(error);
  return new UsageError(`${name}: ${message.trim()}`, { cause: error });
}
