import type { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { toRunStatus } from '../../client/status.js';
import { waitForResult } from '../../client/result.js';
import { isOpenStatus, type RunStatus } from '../../core/status.js';
import { readRun } from '../../history/read-run.js';
import { clientFor, runId, type RunsAccess } from './access.js';
import {
  endedAnswer,
  resultAnswer,
  statusAnswer,
  toolResult,
  toStatusAnswer,
  unfinishedAnswer,
  withErrorCode,
} from './answers.js';

const WAIT_SECONDS = 20;
const MAX_WAIT_SECONDS = 300;

/** Adds the tools that read runs. They need no worker. */
export function addReadTools(server: McpServer, access: RunsAccess): void {
  const { archive } = access;
  const readStatus = async (id: string): Promise<RunStatus> =>
    toRunStatus(await readRun(await clientFor(access, id), id, { archive }), Date.now());
  server.registerTool(
    'agent_status',
    {
      description:
        'Returns what a run is doing, what it waits for, or how it ended. Needs no worker.',
      inputSchema: z.strictObject({ id: runId }),
      outputSchema: statusAnswer,
      annotations: { readOnlyHint: true },
    },
    withErrorCode(async ({ id }) => toolResult(toStatusAnswer(await readStatus(id)))),
  );
  server.registerTool(
    'agent_result',
    {
      description:
        "Waits for a run's answer (of an open run: of its newest turn) and returns it. " +
        'If done is false, the run is still working; ask again.',
      inputSchema: z.strictObject({
        id: runId,
        wait_seconds: z
          .number()
          .min(0)
          .max(MAX_WAIT_SECONDS)
          .optional()
          .describe(`default ${WAIT_SECONDS}; many clients give up after 60`),
      }),
      outputSchema: resultAnswer,
      annotations: { readOnlyHint: true },
    },
    withErrorCode(async ({ id, wait_seconds: seconds = WAIT_SECONDS }, { mcpReq }) => {
      const now = await readStatus(id);
      if (!isOpenStatus(now.status) && now.outcome !== null) {
        return toolResult(endedAnswer(id, now.outcome));
      }
      const client = await clientFor(access, id);
      const outcome = await withinSeconds(seconds, mcpReq.signal, (signal) =>
        waitForResult(client, id, { signal, archive }),
      );
      return toolResult(
        outcome === null ? unfinishedAnswer(await readStatus(id)) : endedAnswer(id, outcome),
      );
    }),
  );
}

/** Runs abortable work for a limited time. Returns null on timeout; throws if the caller aborts. */
async function withinSeconds<T>(
  seconds: number,
  caller: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | null> {
  const timeout = AbortSignal.timeout(seconds * 1_000);
  try {
    return await work(AbortSignal.any([timeout, caller]));
  } catch (error) {
    caller.throwIfAborted();
    if (timeout.aborted && error === timeout.reason) return null;
    throw error;
  }
}
