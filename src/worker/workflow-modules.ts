import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Modules of perdure that Temporal's bundler is pointed at, each compiled or as source. */
export const WORKFLOW_MODULES = {
  /** Every export is a workflow type. */
  workflows: () => here('../workflows/index'),
  payloadConverter: () => here('../workflows/payload-converter'),
  /** What is loaded once for all runs, and what else perdure's own workers set for them. */
  preload: () => here('../workflows/preload'),
  /** The same without touching anything that the workflows of others would feel. */
  engine: () => here('../workflows/agent'),
} as const;

function here(path: string): string {
  const candidates = ['.js', '.ts'].map((end) =>
    fileURLToPath(new URL(path + end, import.meta.url)),
  );
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found === undefined)
    throw new Error(`a part of perdure is missing: ${candidates.join(', ')}`);
  return found;
}
