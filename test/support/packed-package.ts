import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { builtProgram } from './built-program.js';

const exec = promisify(execFile);
const repository = fileURLToPath(new URL('../..', import.meta.url));

/** The other dependencies of a user's project, in the versions that perdure specifies. */
const BESIDE = ['@temporalio/client', '@temporalio/worker', '@temporalio/workflow', 'zod'];

export interface FreshProject {
  readonly folder: string;
  /** Compiles `src` to `dist`; returns the type errors in it and in perdure's types. */
  readonly compile: () => Promise<readonly string[]>;
  /** Runs `node`, or a program of the project, in its folder; resolves with stdout. */
  readonly run: (program: string, ...args: readonly string[]) => Promise<string>;
}

/** No registry was reachable, and npm's cache lacks a package. */
export class NoRegistryError extends Error {
  override readonly name = 'NoRegistryError';
}

/** A project outside the repository, with the given sources and the packed perdure installed. */
export async function freshProject(sources: string): Promise<FreshProject> {
  const folder = await mkdtemp(join(tmpdir(), 'perdure-project-'));
  await cp(sources, join(folder, 'src'), { recursive: true });
  const tarball = await pack(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify(await manifest(tarball)));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  await npm(folder, 'install', '--prefer-offline', '--no-audit', '--no-fund');
  return {
    folder,
    async compile() {
      const { stdout } = await ended(folder, 'tsc', []);
      // The SDK's own declarations have errors under strict settings.
      return stdout
        .split('\n')
        .filter((line) => /error TS/.test(line) && !line.startsWith('node_modules/@temporalio/'));
    },
    async run(program, ...args) {
      const { code, stdout, stderr } = await ended(folder, program, args);
      if (code !== 0) throw new Error(`${program} ended with ${code}:\n${stdout}${stderr}`);
      return stdout;
    },
  };
}

async function ended(
  folder: string,
  program: string,
  args: readonly string[],
): Promise<{ code: number; stdout: string; stderr: string }> {
  const path = program === 'node' ? process.execPath : join(folder, 'node_modules/.bin', program);
  try {
    return { code: 0, ...(await exec(path, args, { cwd: folder, env: ownEnvironment() })) };
  } catch (error) {
    if (error instanceof Error && 'stdout' in error)
      return error as Error & { code: number; stdout: string; stderr: string };
    throw error;
  }
}

/** The tarball that would be published, built from the current sources. */
async function pack(folder: string): Promise<string> {
  const built = dirname(dirname(await builtProgram()));
  for (const part of (await ownManifest()).files) {
    if (part !== 'bin' && part !== 'dist') {
      await cp(join(repository, part), join(built, part), { recursive: true });
    }
  }
  await npm(built, 'pack', '--ignore-scripts', '--pack-destination', folder);
  const [tarball] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm has packed nothing');
  return tarball;
}

interface Manifest {
  readonly files: readonly string[];
  readonly devDependencies: Readonly<Record<string, string>>;
}

async function ownManifest(): Promise<Manifest> {
  return JSON.parse(await readFile(join(repository, 'package.json'), 'utf8'));
}

async function manifest(tarball: string): Promise<object> {
  const { devDependencies: versions } = await ownManifest();
  const beside = BESIDE.map((name) => [name, versions[name]]);
  const tools = ['typescript', '@types/node'].map((name) => [name, versions[name]]);
  return {
    private: true,
    type: 'module',
    dependencies: { perdure: `file:./${tarball}`, ...Object.fromEntries(beside) },
    devDependencies: Object.fromEntries(tools),
  };
}

/** Strict, and also checks the declarations of installed packages. */
const TSCONFIG = {
  compilerOptions: {
    strict: true,
    exactOptionalPropertyTypes: true,
    verbatimModuleSyntax: true,
    module: 'nodenext',
    target: 'ES2023',
    types: ['node'],
    outDir: 'dist',
    rootDir: 'src',
  },
  include: ['src'],
};

async function npm(cwd: string, ...args: readonly string[]): Promise<void> {
  try {
    await exec('npm', args, { cwd, env: ownEnvironment() });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const unreachable = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|ENOTCACHED/.exec(
      text,
    );
    if (unreachable === null) throw error;
    throw new NoRegistryError(`npm cannot ask its registry (${unreachable[0]})`, { cause: error });
  }
}

/** Removes the npm variables that describe this repository to child processes. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const foreign =
    /^(npm_(package|lifecycle)_|npm_config_(local_)?prefix$|INIT_CWD$|NODE_ENV$|OPENAI_|PERDURE_|TEMPORAL_)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}
