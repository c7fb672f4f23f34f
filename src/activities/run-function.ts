import { Context } from '@temporalio/activity';
import { fitText } from '../tools/cut.js';
import { normaliseResult } from '../tools/normalise.js';
import type { RunFunctionInput, RunFunctionResult } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { withHeartbeat } from './heartbeat.js';
import { prepareCall } from './prepare-call.js';

/** Asks a tool's `verify` what became of a call. What it throws is tried again, then left to a person. */
export async function runFunction(
  deps: ActivityDependencies,
  input: RunFunctionInput,
): Promise<RunFunctionResult> {
  const context = Context.current();
  return await withHeartbeat(
    context,
    () => undefined,
    async () => {
      const prepared = await prepareCall(deps, context, input);
      if (!prepared.ok) return { happened: 'unknown', message: 'the arguments cannot be read' };
      const signal = context.cancellationSignal;
      const verification = await prepared.tool.verify?.(input.key, { signal });
      if (verification === undefined) return { happened: 'unknown', message: 'verify cannot tell' };
      if (!verification.happened) return { happened: false };
      const whole = await normaliseResult(verification.result ?? 'It happened.', { signal });
      const { text, blob } = await fitText(whole, deps.blobs);
      return { happened: true, result: { ok: true, text, ...(blob && { blob }) } };
    },
  );
}
