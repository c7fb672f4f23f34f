import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inspect } from 'node:util';
import type { Payload, PayloadCodec } from '@temporalio/common';
import type { LogEntry } from '@temporalio/worker';
import { Worker } from '@temporalio/worker';
import type { History } from '../../src/history/history-event.js';
import { canariesIn } from './canaries.js';
import { historyText } from './history-text.js';

/**
 * Where a planted secret was seen. Stored here in addition to the error of the test, which product
 * code may swallow.
 */
const leaks: string[] = [];

/** Throws, once, for all secrets that were seen since the last time. */
export function expectNoLeaks(): void {
  const seen = [...new Set(leaks.splice(0))];
  if (seen.length > 0) throw new Error(`planted secrets were let out:\n${seen.join('\n')}`);
}

/** Records planted secrets in the output at a place. */
export function watch(place: string, given: Uint8Array | string): void {
  for (const name of canariesIn(given)) {
    const at = process.env['CANARY_DEBUG'] ? `: ${Buffer.from(given).toString()}` : '';
    leaks.push(`${name} in ${place}${at}`);
  }
}

/** Watches every payload that a client sends or receives. */
export const canaryCodec: PayloadCodec = {
  encode: async (payloads) => watched('a payload that a client sent', payloads),
  decode: async (payloads) => watched('a payload that a client read', payloads),
};

function watched(place: string, payloads: Payload[]): Payload[] {
  for (const { data } of payloads) if (data) watch(place, data);
  return payloads;
}

/**
 * Watches all that workers of this process send: results, failures, heartbeats, and workflow
 * commands.
 */
const SENT = [
  'completeActivityTask',
  'completeWorkflowActivation',
  'recordActivityHeartbeat',
] as const;

type Native = Record<(typeof SENT)[number], (bytes: Buffer) => unknown>;

let watching = false;

/** Watches every worker that this process creates from now on. Test files share processes. */
export function watchWorkers(): void {
  if (watching) return;
  watching = true;
  // oxlint-disable-next-line typescript/unbound-method -- called with its `this` below
  const { create } = Worker;
  Worker.create = async function (this: typeof Worker, options) {
    const worker = await create.call(this, options);
    const native = Reflect.get(worker, 'nativeWorker') as Native;
    for (const method of SENT) {
      const send = native[method];
      native[method] = (bytes) => {
        watch(`${method} of a worker`, bytes);
        return send(bytes);
      };
    }
    return worker;
  };
}

/** All entries that the workers of this process have logged. */
export const watchedLog: LogEntry[] = [];

export function watchLog(entry: LogEntry): void {
  watchedLog.push(entry);
  watch('the log', `${entry.message} ${inspect(entry.meta, { depth: 20, maxStringLength: null })}`);
}

export function watchHistory(history: History): void {
  watch('a history', historyText(history));
}

/** Checks every file below a folder: blobs, archive, live, and a server's database. */
export async function watchFiles(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const file = join(entry.parentPath, entry.name);
    watch(`the file ${file.slice(folder.length + 1)}`, await readFile(file).catch(() => ''));
  }
}
