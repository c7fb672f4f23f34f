import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';

/** Packages that load files of their own, and that the scripts do not need. */
const APART = ['webpack', '@swc/core', 'jiti'];
const THREAD = '@temporalio/worker/lib/workflow/workflow-worker-thread.js';

/** Where a bundled script and the compiled sources are. */
interface Places {
  readonly repository: string;
  /** Where the files are written. */
  readonly draft: string;
  /** Where they will be. */
  readonly folder: string;
}

/**
 * Bundles the scripts of tests with everything that they import, apart from `dist`, each into one
 * file that ends with `.bundle.mjs`. A process that loads one file needs half of the CPU time of
 * one that loads a thousand.
 */
export async function bundleScripts(scripts: readonly string[], places: Places): Promise<void> {
  const { repository, draft, folder } = places;
  const thread = createRequire(`${repository}/package.json`).resolve(THREAD);
  const common: BuildOptions = {
    bundle: true,
    platform: 'node',
    mainFields: ['module', 'main'],
    external: APART,
    logLevel: 'error',
    plugins: [
      builtSources(places),
      ownPaths(places, { [thread]: `${folder}/workflow-thread.cjs` }),
    ],
  };
  await Promise.all([
    build({
      ...common,
      entryPoints: scripts.map((script) => `${repository}/${script}`),
      outdir: draft,
      outbase: repository,
      outExtension: { '.js': '.bundle.mjs' },
      splitting: true,
      chunkNames: 'chunks/[name]-[hash]',
      format: 'esm',
      banner: { js: REQUIRE },
    }),
    build({
      ...common,
      entryPoints: [thread],
      outfile: `${draft}/workflow-thread.cjs`,
      format: 'cjs',
    }),
  ]);
}

/** Bundled CommonJS modules use this to load Node's modules. */
const REQUIRE = `import { createRequire as $createRequire } from 'node:module';
const require = $createRequire(import.meta.url);`;

/** Takes the sources from `dist`. */
function builtSources({ repository, draft }: Places): Plugin {
  return {
    name: 'built-sources',
    setup(builder) {
      builder.onResolve({ filter: /^\.{1,2}\/.*\.js$/ }, ({ path, resolveDir }) => {
        const source = relative(`${repository}/src`, resolve(resolveDir, path));
        return source.startsWith('..') ? undefined : { path: `${draft}/dist/${source}` };
      });
    },
  };
}

/**
 * Lets each module find the files next to it by preserving the path that it has outside the bundle.
 * `instead`: other files for those that a module asks for by name.
 */
function ownPaths(
  { repository, draft, folder }: Places,
  instead: Readonly<Record<string, string>>,
): Plugin {
  const moved = (path: string): string =>
    path.startsWith(draft) || path.includes('node_modules')
      ? path.replace(draft, folder)
      : join(folder, relative(repository, path)).replace(/\.ts$/, '.js');
  return {
    name: 'own-paths',
    setup(builder) {
      builder.onLoad({ filter: /\.([cm]?js|ts)$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        const { resolve: find } = createRequire(path);
        const contents = text
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(moved(path)).href))
          .replaceAll(/\b__dirname\b/g, JSON.stringify(dirname(moved(path))))
          .replaceAll(/\brequire\.resolve\('([^']+)'\)/g, (call, name: string) => {
            try {
              const found = find(name);
              return JSON.stringify(instead[found] ?? found);
            } catch {
              // It is in a comment, or in a branch for other platforms.
              return call;
            }
          });
        if (contents === text) return undefined;
        return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
      });
    },
  };
}
