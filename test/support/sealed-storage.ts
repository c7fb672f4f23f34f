import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Client } from '@temporalio/client';
import { isObject } from '../../src/core/text/json.js';

/** Something encrypted, with the id of its key. */
interface Sealed {
  readonly purpose: 'payload' | 'blob';
  readonly key: string;
  readonly bytes: Buffer;
}

/** Returns all encrypted payloads within a value: an answer of the server, or JSON of the archive. */
function payloadsIn(value: unknown, found: Sealed[] = []): readonly Sealed[] {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return found;
  const { metadata, data } = value as { metadata?: unknown; data?: unknown };
  const id = isObject(metadata) ? metadata['encryption-key-id'] : undefined;
  if (id !== undefined) {
    const bytes = (one: unknown): Buffer =>
      typeof one === 'string' ? Buffer.from(one, 'base64') : Buffer.from(one as Uint8Array);
    found.push({ purpose: 'payload', key: bytes(id).toString(), bytes: bytes(data) });
    return found;
  }
  for (const one of Object.values(value)) payloadsIn(one, found);
  return found;
}

/** Returns everything encrypted that a server, the archive, and the blob store have, by where it is. `raw`: a client without a codec. */
export async function sealedIn(
  raw: Client,
  home: string,
): Promise<readonly { readonly at: string; readonly sealed: Sealed }[]> {
  const found: { at: string; sealed: Sealed }[] = [];
  const add = (at: string, value: unknown): void => {
    for (const sealed of payloadsIn(value)) found.push({ at, sealed });
  };
  const { workflowService: service } = raw;
  const namespace = 'default';
  const { executions } = await service.listWorkflowExecutions({ namespace });
  for (const listed of executions) {
    const { workflowId, runId } = listed.execution ?? {};
    const at = workflowId ?? '';
    const execution = { workflowId: at, runId: runId ?? '' };
    add(at, listed.memo);
    add(at, await raw.workflow.getHandle(at, execution.runId).fetchHistory());
    add(at, await service.describeWorkflowExecution({ namespace, execution }));
  }
  for (const { scheduleId: id } of (await service.listSchedules({ namespace })).schedules) {
    const scheduleId = id ?? '';
    const { schedule } = await service.describeSchedule({ namespace, scheduleId });
    add(scheduleId, schedule?.action?.startWorkflow?.input);
    add(scheduleId, schedule?.action?.startWorkflow?.memo);
    add(scheduleId, schedule?.action?.startWorkflow?.userMetadata);
  }
  for (const name of ['archive', 'blobs']) {
    const entries = await readdir(join(home, name), {
      recursive: true,
      withFileTypes: true,
    });
    for (const entry of entries.filter((one) => one.isFile())) {
      const text = await readFile(join(entry.parentPath, entry.name), 'utf8');
      const [, id, data = ''] = /^perdure encrypted (\S+)\n([^]*)$/.exec(text) ?? [];
      if (id !== undefined) {
        const sealed = { purpose: 'blob', key: id, bytes: Buffer.from(data, 'base64') } as const;
        found.push({ at: name, sealed });
      } else if (text.startsWith('{')) add(name, JSON.parse(text));
    }
  }
  return found;
}
