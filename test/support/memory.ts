import { expect } from 'vitest';
import { z } from 'zod';
import { historyToJson } from '../../src/history/history-event.js';
import { sha256Hex } from '../../src/core/text/json.js';
import type { MemoryRun } from '../../src/memory/memory-run.js';
import { type MemoryOptions, playRun } from '../../src/memory/run-in-memory.js';
import { parseRecording } from '../../src/recordings/parse-recording.js';
import type { Recording } from '../../src/recordings/recording.js';
import { recordingOf } from '../../src/recordings/rerun.js';
import { defineTool } from '../../src/tools/define-tool.js';
import { replayHistory, setWorkflowCode } from '../../src/worker/bundle.js';
import { installRuntime } from '../../src/worker/log.js';
import { sourceBundle } from './bundle.js';

/** Lets runs in memory, and replays, take the bundle of the test run. */
export async function useSourceBundle(): Promise<void> {
  installRuntime('ERROR');
  setWorkflowCode(await sourceBundle());
}

/** Plays a run in memory, and returns its recording as a file holds it, with the texts that were stored. */
export async function playAndRecord(
  agent: Parameters<typeof playRun>[0],
  options: MemoryOptions,
): Promise<Recording> {
  const texts = new Map<string, string>();
  const blobs: MemoryOptions['blobs'] = {
    async put(value) {
      const sha256 = sha256Hex(value);
      texts.set(sha256, value);
      return { sha256, bytes: Buffer.byteLength(value) };
    },
    get: async ({ sha256 }) => texts.get(sha256) ?? '',
  };
  const run = await playRun(agent, { ...options, blobs });
  const recording = recordingOf(run, { blobs: Object.fromEntries(texts) });
  return parseRecording(JSON.parse(JSON.stringify(recording)));
}

/** The histories of a run in memory replay below the SDK's real core. */
export async function expectReplays({ history }: Pick<MemoryRun, 'history'>): Promise<void> {
  for (const one of history) {
    expect(await replayHistory(historyToJson(one.history))).toMatchObject({ type: 'same' });
  }
}

/** The texts of a run's messages, with their roles. */
export function textsOf({ transcript }: Pick<MemoryRun, 'transcript'>): readonly string[] {
  return transcript.messages.map(({ role, text }) => `${role}: ${text}`);
}

const number = z.object({ n: z.number().optional() });

/** Reads something. */
export const look = defineTool({
  name: 'look',
  description: 'Looks something up.',
  effect: 'read',
  input: number,
  execute: ({ n }) => `saw ${n ?? 'nothing'}`,
});

/** Reads something within the workflow task; 13 always throws. */
export const peek = defineTool({
  name: 'peek',
  description: 'Looks something up at once.',
  effect: 'read',
  inline: true,
  input: number,
  execute({ n }) {
    if (n === 13) throw new Error('no such thing');
    return `saw ${n ?? 'nothing'}`;
  },
});

/** Pays once, and only if a person approves. */
export const pay = defineTool({
  name: 'pay',
  description: 'Pays.',
  effect: 'once',
  approval: 'always',
  input: number,
  execute: ({ n }) => `paid ${n ?? 'nothing'}`,
});

/** Ends only when it is canceled. */
export const hang = defineTool({
  name: 'hang',
  description: 'Never ends.',
  effect: 'read',
  timeout: '1 hour',
  input: number,
  execute: (_, { signal }) =>
    new Promise<string>((_resolve, reject) => {
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    }),
});
