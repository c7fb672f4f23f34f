import { createRequire } from 'node:module';
import { z } from 'zod';
import type { Finding } from './finding.js';

const load = createRequire(import.meta.url);
const manifest = z.object({
  version: z.string(),
  engines: z.object({ node: z.string() }).optional(),
});
const SDK = ['client', 'common', 'worker', 'workflow'] as const;

/** Checks the versions of perdure, Node, and Temporal's SDK. */
export function versionsFinding(node: string = process.versions.node): Finding {
  const own = manifest.parse(load('../../../package.json'));
  const sdk = SDK.map((name) => versionOf(`@temporalio/${name}`));
  const data = { perdure: own.version, node, sdk: sdk[0] ?? '' };
  const text = `perdure ${own.version}, Node ${node}, Temporal SDK ${[...new Set(sdk)].join(' and ')}`;
  const oldest = own.engines?.node.replace(/^\D+/, '') ?? '0';
  if (isOlder(node, oldest)) {
    const fix = `install Node ${oldest} or later`;
    return { name: 'versions', level: 'problem', text, fix, data };
  }
  if (new Set(sdk).size > 1) {
    const fix = 'install one version of all @temporalio packages: npm dedupe';
    return { name: 'versions', level: 'problem', text, fix, data };
  }
  return { name: 'versions', level: 'ok', text, data };
}

function versionOf(name: string): string {
  return manifest.parse(load(`${name}/package.json`)).version;
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split('.').map(Number));
  const at = [0, 1, 2].find((index) => (a?.[index] ?? 0) !== (b?.[index] ?? 0));
  return at !== undefined && (a?.[at] ?? 0) < (b?.[at] ?? 0);
}
