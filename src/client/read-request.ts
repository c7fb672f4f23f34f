import type { Client } from '@temporalio/client';
import { InputError } from '../core/errors.js';
import type { Request } from '../core/requests/request.js';
import { visible } from '../core/text/summaries.js';
import { readRun } from '../history/read-run.js';
import type { BlobStore } from '../storage/blob-store.js';
import { toRunStatus } from './status.js';

/**
 * Returns an open request of a run with all of its arguments. Needs no worker. Rejects with a
 * `NoRunError`, with an `InputError` if the run has no such open request, and with a `BlobError` if
 * the arguments are in the blob store and cannot be read.
 */
export async function readRequest(
  client: Client,
  { run, id }: { readonly run: string; readonly id: string },
  blobs: BlobStore,
): Promise<Request> {
  const { pending } = toRunStatus(await readRun(client, run), Date.now());
  const request = pending.find((one) => one.id === id);
  if (request === undefined) throw new InputError(noRequest(run, id, pending));
  return await withArguments(request, blobs);
}

/** Returns the request with arguments that are in the blob store. Rejects with a `BlobError`. */
export async function withArguments(request: Request, blobs: BlobStore): Promise<Request> {
  const { argumentsBlob, parsedBlob } = request;
  return {
    ...request,
    ...(argumentsBlob && { arguments: await blobs.get(argumentsBlob) }),
    ...(parsedBlob && { parsed: await blobs.get(parsedBlob) }),
  };
}

/** Returns the message for a request that a run does not have; it names those that it has. */
export function noRequest(run: string, id: string, pending: readonly Request[]): string {
  const open = pending.map((one) => one.id).join(', ');
  const known = open === '' ? 'it has no open request' : `its open requests are ${open}`;
  return `request: expected an open request of run ${visible(run)}, got ${visible(id)}; ${known}`;
}
