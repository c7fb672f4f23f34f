import { type Drawing, drawRun } from '../core/graph/draw.js';
import { NoRunError } from '../core/errors.js';
import { isLoaded } from '../core/rules/limits.js';
import type { Client } from '@temporalio/client';
import type { Archive } from '../storage/blob-store.js';
import { readRun } from './read-run.js';
import { readWaited } from './segments.js';

/** Returns the drawing of a run in its graph. `run`: its id as the caller named it. Throws a `NoRunError` before a worker has loaded its agent. */
export async function readDrawing(
  source: { readonly client: Client; readonly archive: Archive },
  { run, id }: { readonly run: string; readonly id: string },
): Promise<Drawing> {
  const read = await readRun(source.client, id, { archive: source.archive });
  const { state } = read.view;
  if (state === null || !isLoaded(state)) {
    throw new NoRunError(`run "${run}" has no graph yet: no worker has loaded its agent`);
  }
  return drawRun(state, { here: 'here', waited: await readWaited(source, read) });
}
