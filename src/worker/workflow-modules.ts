import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Paths of perdure's modules for Temporal's bundler, compiled or as source. */
export const WORKFLOW_MODULES = {
  /** Each export is a workflow type. */
  workflows: () => modulePath('../workflows/index'),
  interceptors: () => modulePath('../workflows/interceptors'),
  payloadConverter: () => modulePath('../workflows/payload-converter'),
  /** Loads the engine once for all runs, and sets the stack depth of perdure's own workers. */
  preload: () => modulePath('../workflows/preload'),
  /** Loads the engine, without a setting that would affect workflows other than perdure's. */
  engine: () => modulePath('../workflows/agent'),
} as const;

function modulePath(path: string): string {
  const candidates = ['.js', '.ts'].map((end) =>
    fileURLToPath(new URL(path + end, import.meta.url)),
  );
  const found = candidates.find((candidate) => existsSync(candidate));
  if (found !== undefined) return found;
  throw new Error(`perdure: expected one of ${candidates.join(', ')}, got none; install it again`);
}
