import { Context } from '@temporalio/activity';
import { isObject } from '../../core/json.js';
import { redactMessage } from '../../secrets/redact.js';
import type { RunFunctionInput, RunFunctionResult } from '../../core/contract.js';
import type { ActivityDependencies } from '../dependencies.js';
import { withHeartbeat } from '../heartbeat.js';
import { prepareCall } from './prepare-call.js';
import { needingStorage } from '../storage.js';
import { settleTool } from './run-bounded.js';
import { keepResult, writeResult } from './tool-result.js';

/** Asks a tool's `verify` what became of a call. What it throws is tried again, then left to a person. */
export async function runFunction(
  deps: ActivityDependencies,
  input: RunFunctionInput,
): Promise<RunFunctionResult> {
  const context = Context.current();
  const warn = (message: string): void => context.log.warn(redactMessage(message));
  return await withHeartbeat(
    context,
    () => undefined,
    async () => {
      const prepared = await needingStorage({}, () => prepareCall(deps, context, input));
      if (!prepared.ok) return { happened: 'unknown', message: 'the arguments cannot be read' };
      const { tool, pinned } = prepared;
      const end = await settleTool(
        async (signal) => {
          const verification: unknown = await tool.verify?.(input.key, { signal });
          const { name, effect } = pinned;
          const about = { name, effect, signal, warn };
          return { verification, written: await writeResult(resultIn(verification), about) };
        },
        {
          name: `verify of tool "${pinned.name}"`,
          timeoutMs: pinned.timeoutMs,
          cancelled: context.cancellationSignal,
        },
      );
      if (end.type === 'thrown') throw end.error;
      if (end.type === 'cancelled') throw context.cancellationSignal.reason;
      if (end.type === 'timeout') return { happened: 'unknown', message: 'verify took too long' };
      const { verification, written } = end.value;
      // Nothing but a clear no lets a destructive call be made again.
      if (!isObject(verification) || typeof verification['happened'] !== 'boolean') {
        return { happened: 'unknown', message: 'verify cannot tell' };
      }
      if (!verification['happened']) return { happened: false };
      const { output: _, ...kept } = await keepResult(pinned, written, deps.blobs);
      return { happened: true, result: { ok: true, ...kept } };
    },
  );
}

function resultIn(verification: unknown): unknown {
  const result = isObject(verification) ? verification['result'] : undefined;
  return result ?? 'It happened.';
}
