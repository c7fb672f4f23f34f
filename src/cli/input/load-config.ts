import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { relative, resolve, sep } from 'node:path';
import type { FilePermissions } from '../../agents/files-agent.js';
import type { Config } from '../../config.js';
import { collectSecretNames } from '../../worker/secret-names.js';
import { learnSecrets } from '../../secrets/known.js';
import { UsageError } from '../context.js';
import { assertManifest } from './manifest.js';

/** The names of configuration files in the working directory, in order of preference. */
export const CONFIG_NAMES: readonly string[] = [
  'perdure.config.ts',
  'perdure.config.js',
  'perdure.config.mjs',
];

interface ConfigPlace {
  /**
   * The path of `--config`; default: the first of `CONFIG_NAMES` in `folder` that exists. False for
   * `--no-config`: none.
   */
  readonly file?: string | false | undefined;
  /** The working directory: the base of relative paths, and the root of the built-in agent. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  /** Permissions of the built-in agent; an agent in a file sets its own. */
  readonly permissions?: FilePermissions;
}

/**
 * Loads the configuration: the named file, else the default file, else the built-in agent `files`.
 * Throws a `UsageError` that names the file and the fix.
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

/** Returns the absolute path of the configuration file; null for the built-in configuration. */
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
    `--config: expected an existing file, got ${file}; name one that exists, or omit --config ` +
      `to use ${CONFIG_NAMES.join(', ')}, or the built-in agent`,
  );
}

/**
 * Imports the module of `--scorers` as a configuration is imported. Throws a
 * `UsageError` that names the file.
 */
export async function loadModule(
  file: string,
  { folder, env }: Pick<ConfigPlace, 'folder' | 'env'>,
): Promise<Readonly<Record<string, unknown>>> {
  const path = resolve(folder, file);
  if (!existsSync(path)) {
    throw new UsageError(`--scorers: expected an existing file, got ${file}; name one that exists`);
  }
  return { ...(await importModule(path, file, env)) };
}

async function readConfig(file: string, { folder, env }: ConfigPlace): Promise<Config> {
  const name = relative(folder, file);
  const loaded = await importModule(file, name, env);
  if (!Object.hasOwn(loaded, 'default')) {
    throw new UsageError(
      `${name}: expected a default export, got none; end it with: export default defineConfig({ agents: [...] });`,
    );
  }
  const { defineConfig } = await import('../../config.js');
  const value = 'default' in loaded ? loaded.default : undefined;
  if (typeof value !== 'object' || value === null) {
    throw new UsageError(
      `${name}: expected a configuration as default export, got ${value === null ? 'null' : typeof value}; ` +
        'export defineConfig({ agents: [...] })',
    );
  }
  try {
    // A result of defineConfig passes again; any other value is checked here.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- defineConfig checks it
    const config = defineConfig(value as Config);
    learnSecrets({ env, names: collectSecretNames(config) });
    return config;
  } catch (error) {
    throw asUsageError(name, error);
  }
}

/** The variable with which `dev` asks its worker for the files that the configuration imports. */
export const REPORTS_FILES = 'PERDURE_REPORTS_FILES';

function isOwn(path: string): boolean {
  return !path.split(sep).includes('node_modules');
}

/**
 * Imports the file without a build step. In it, `perdure` resolves to this installation, so no
 * module is loaded twice.
 */
async function importModule(file: string, name: string, env: NodeJS.ProcessEnv): Promise<object> {
  const { createJiti } = await import('jiti');
  const jiti = createJiti(file, {
    // The cache is in the shared folder for temporary files, where another user could plant code.
    fsCache: false,
    virtualModules: {
      perdure: lazyModule(() => import('../../index.js')),
      'perdure/client': lazyModule(() => import('../../client.js')),
      'perdure/graphs': lazyModule(() => import('../../graphs.js')),
      'perdure/http': lazyModule(() => import('../../http.js')),
      'perdure/models': lazyModule(() => import('../../models.js')),
      'perdure/output': lazyModule(() => import('../../output.js')),
      'perdure/testing': lazyModule(() => import('../../testing.js')),
      'perdure/tools': lazyModule(() => import('../../tools.js')),
      'perdure/worker': lazyModule(() => import('../../worker.js')),
      'perdure/workflow': lazyModule(() => import('../../workflow.js')),
      ...(!canResolve('zod', file) && { zod: lazyModule(() => import('zod')) }),
    },
  });
  const before = new Set(Object.keys(jiti.cache));
  try {
    const loaded = await jiti.import<object>(file);
    if (env[REPORTS_FILES] !== undefined) {
      const files = Object.keys(jiti.cache).filter((path) => !before.has(path) && isOwn(path));
      process.send?.({ [REPORTS_FILES]: [file, ...files] });
    }
    return loaded;
  } catch (error) {
    await assertManifest(file);
    throw syntaxError({ file, name }, error) ?? asUsageError(name, error);
  }
}

/** Returns a module that is loaded only when it is imported: jiti awaits its virtual modules. */
function lazyModule(load: () => Promise<object>): PromiseLike<object> {
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
  // Node lists the files that have imported a missing module, of which jiti's are the most.
  const [told = ''] = message.split('\nRequire stack:');
  return new UsageError(`${name}: ${told.trim()}`, { cause: error });
}

/** The beginning of jiti's errors about syntax, whose last line is the place. */
const PARSE_ERROR = 'ParseError: ';

/**
 * Returns the error for a file that cannot be parsed, in one line with its place first; null for any other
 * error. `name`: how the file of the configuration is shown.
 */
function syntaxError(
  { file, name }: { readonly file: string; readonly name: string },
  error: unknown,
): UsageError | null {
  const message = error instanceof Error ? error.message : '';
  const [what = '', where = ''] = message.trim().split('\n');
  const [end = '', line, column] = /:(\d+):(\d+)$/.exec(where) ?? [];
  if (!what.startsWith(PARSE_ERROR) || end === '') return null;
  const path = where.trim().slice(0, -end.length);
  // jiti counts columns from 0, unlike editors.
  const place = `${path === file ? name : path}:${line}:${Number(column) + 1}`;
  const text = `${place}: syntax error: ${what.slice(PARSE_ERROR.length).trim()}`;
  return new UsageError(text, { cause: error });
}
