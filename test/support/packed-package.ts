import { execFile } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { llmsFull } from '../../scripts/write-llms.js';
import { builtProgram } from './built-program.js';

const exec = promisify(execFile);
const repository = fileURLToPath(new URL('../..', import.meta.url));

/** The other dependencies of a user's project, in the versions that perdure specifies. */
const BESIDE = ['@temporalio/client', '@temporalio/worker', '@temporalio/workflow', 'zod'];

const TOOLS = ['typescript', '@types/node', 'vitest'];

export interface FreshProject {
  readonly folder: string;
  /** Compiles `src` to `dist`; returns the type errors in it and in perdure's types. */
  readonly compile: () => Promise<readonly string[]>;
  /** Runs `node`, or a program of the project, in its folder; resolves with stdout. */
  readonly run: (program: string, ...args: readonly string[]) => Promise<string>;
}

/**
 * A project of its own outside the repository, with the given sources and the packed perdure installed.
 * Its other dependencies are links to those of the repository: for npm to unpack them anew takes half a
 * minute of CPU time. With PERDURE_NPM_INSTALL set, npm installs everything from its registry.
 */
export async function freshProject(sources: string): Promise<FreshProject> {
  // The real path: Node names its modules by it.
  const folder = await mkdtemp(join(await realpath(tmpdir()), 'perdure-project-'));
  await cp(sources, join(folder, 'src'), { recursive: true });
  const tarball = await pack(folder);
  await writeFile(join(folder, 'package.json'), JSON.stringify(await manifest(tarball)));
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  if (process.env['PERDURE_NPM_INSTALL'] === undefined) await install(folder, tarball);
  else await npm(folder, 'install', '--prefer-offline', '--no-audit', '--no-fund');
  return {
    folder,
    async compile() {
      const { stdout } = await ended(folder, 'tsc', []);
      // The SDK's own declarations have errors under strict settings.
      return stdout
        .split('\n')
        .filter((line) => /error TS/.test(line) && !/^\S*node_modules\/@temporalio\//.test(line));
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
  const own = join(folder, 'node_modules/.bin', program);
  const path = program === 'node' ? process.execPath : program === 'npm' ? program : own;
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
  // A folder of its own, since another test file may pack at the same time.
  const packed = await mkdtemp(join(tmpdir(), 'perdure-packed-'));
  const own = ['bin', 'dist', 'package.json'];
  for (const part of new Set([...own, ...(await manifestIn(repository)).files])) {
    // Written when the package is packed, and not in the repository.
    if (part === 'llms-full.txt') await writeFile(join(packed, part), llmsFull());
    else {
      const from = own.includes(part) ? built : repository;
      await cp(join(from, part), join(packed, part), { recursive: true });
    }
  }
  await npm(packed, 'pack', '--ignore-scripts', '--pack-destination', folder);
  await rm(packed, { recursive: true });
  const [tarball] = (await readdir(folder)).filter((name) => name.endsWith('.tgz'));
  if (tarball === undefined) throw new Error('npm has packed nothing');
  return tarball;
}

/** Unpacks the tarball, and links what the manifest in it depends on, what the project does, and the programs. */
async function install(folder: string, tarball: string): Promise<void> {
  const modules = join(folder, 'node_modules');
  const own = join(modules, 'perdure');
  await mkdir(own, { recursive: true });
  await exec('tar', ['-xzf', join(folder, tarball), '-C', own, '--strip-components=1']);
  const { dependencies, peerDependencies, peerDependenciesMeta, bin } = await manifestIn(own);
  const required = Object.keys(peerDependencies).filter(
    (name) => peerDependenciesMeta[name]?.optional !== true,
  );
  for (const name of new Set([...Object.keys(dependencies), ...required, ...BESIDE, ...TOOLS])) {
    await link(join(repository, 'node_modules', name), join(modules, name));
  }
  for (const [name, path] of Object.entries(bin)) {
    await chmod(join(own, path), 0o755);
    await link(join(own, path), join(modules, '.bin', name));
  }
  for (const program of ['tsc', 'vitest']) {
    await link(join(repository, 'node_modules', '.bin', program), join(modules, '.bin', program));
  }
}

async function link(target: string, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await symlink(target, path);
}

interface Manifest {
  readonly files: readonly string[];
  readonly bin: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta: Readonly<Record<string, { readonly optional?: boolean }>>;
}

async function manifestIn(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
}

async function manifest(tarball: string): Promise<object> {
  const { devDependencies: versions } = await manifestIn(repository);
  const beside = BESIDE.map((name) => [name, versions[name]]);
  const tools = TOOLS.map((name) => [name, versions[name]]);
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
  await exec('npm', args, { cwd, env: ownEnvironment() });
}

/** Removes the npm variables that describe this repository to child processes. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const foreign =
    /^(npm_(package|lifecycle)_|npm_config_(local_)?prefix$|INIT_CWD$|NODE_ENV$|OPENAI_|PERDURE_|TEMPORAL_)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)));
}
