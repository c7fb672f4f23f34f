import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type BuildOptions, type Plugin } from 'esbuild';

/** Packages that load files of their own, and that the scripts do not need. */
const APART = ['webpack', '@swc/core', 'jiti'];
const THREAD = '@temporalio/worker/lib/workflow/workflow-worker-thread.js';

/**
 * Bundles compiled scripts with everything that they import, each into one file next to it, with
 * the ending `.bundle.mjs`. A process that loads one file needs half of the CPU time of one that
 * loads a thousand. `draft`: where the scripts are now; `folder`: where they will be.
 */
export async function bundleScripts(
  scripts: readonly string[],
  { draft, folder }: { readonly draft: string; readonly folder: string },
): Promise<void> {
  const moved = (path: string): string => path.replace(draft, folder);
  const thread = `${draft}/workflow-thread.cjs`;
  const source = createRequire(`${draft}/package.json`).resolve(THREAD);
  const threads = new Map([[source, moved(thread)]]);
  const common: BuildOptions = {
    bundle: true,
    platform: 'node',
    mainFields: ['module', 'main'],
    external: APART,
    logLevel: 'error',
    plugins: [ownPaths({ moved, threads })],
  };
  const bundle = async (script: string): Promise<void> => {
    await build({
      ...common,
      entryPoints: [script],
      outfile: script.replace(/\.js$/, '.bundle.mjs'),
      format: 'esm',
      banner: { js: REQUIRE },
    });
  };
  await Promise.all([
    ...scripts.map(bundle),
    build({ ...common, entryPoints: [source], outfile: thread, format: 'cjs' }),
  ]);
}

/** Bundled CommonJS modules use this to load Node's modules. */
const REQUIRE = `import { createRequire as $createRequire } from 'node:module';
const require = $createRequire(import.meta.url);`;

/**
 * Lets each module find the files next to it by preserving the path that it has outside the bundle.
 */
function ownPaths({
  moved,
  threads,
}: {
  readonly moved: (path: string) => string;
  readonly threads: ReadonlyMap<string, string>;
}): Plugin {
  return {
    name: 'own-paths',
    setup(builder) {
      builder.onLoad({ filter: /\.[cm]?js$/ }, async ({ path }) => {
        const text = await readFile(path, 'utf8');
        const { resolve } = createRequire(path);
        const contents = text
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(moved(path)).href))
          .replaceAll(/\b__dirname\b/g, JSON.stringify(dirname(moved(path))))
          .replaceAll(/\brequire\.resolve\('([^']+)'\)/g, (call, name: string) => {
            try {
              const found = resolve(name);
              return JSON.stringify(threads.get(found) ?? found);
            } catch {
              // It is in a comment, or in a branch for other platforms.
              return call;
            }
          });
        return contents === text ? undefined : { contents };
      });
    },
  };
}
