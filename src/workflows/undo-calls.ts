import { condition } from '@temporalio/workflow';
import { findTool } from '../core/calls/batch.js';
import type { RunFunctionInput } from '../core/contract.js';
import { callSummary } from '../core/text/summaries.js';
import { nextWorkStep } from '../core/work/next-step.js';
import { findWork, isUndo, UNDO, type Work } from '../core/work/work.js';
import { undoActivity } from './activities.js';
import { checkProposal } from './check-decision.js';
import type { RunContext } from './run-context.js';
import { mustLeave } from './segment-facts.js';
import { activityStart, doWork, type ActivityStart } from './do-work.js';

/** Continues the undoing of calls that a new segment has received. */
export function continueUndoing(run: RunContext): void {
  for (const { name } of run.state.work.filter(isUndo)) runUndo(run, name.slice(UNDO.length));
}

/** Undoes a call while the run continues. Does nothing if there is no such call. */
export function runUndo(run: RunContext, id: string): void {
  void undo(run, `${UNDO}${id}`);
}

async function undo(run: RunContext, name: string): Promise<void> {
  const isOver = (): boolean => run.ended !== null || findWork(run.state, name) === undefined;
  for (;;) {
    await condition(() => isOver() || canProceed(run, name));
    if (isOver()) return;
    await checkProposal(run, name);
    await doWork(run, {
      name,
      doing: 'undo',
      activity: (_, work) => activityFor(run, work),
    });
  }
}

/** Whether an undo can proceed. It waits for decisions, interruptions, and the next segment. */
function canProceed(run: RunContext, name: string): boolean {
  const work = findWork(run.state, name);
  if (work === undefined || run.leaving || mustLeave(run)) return false;
  if (work.proposal !== undefined) return true;
  return work.phase !== 'asking' && nextWorkStep(run.state, work, Date.now()).type !== 'stop';
}

function activityFor(run: RunContext, work: Work | undefined): ActivityStart {
  const kept = run.state.kept?.find(({ call }) => work?.name === `${UNDO}${call.id}`);
  const tool = kept && findTool(run.state, kept.call.name);
  if (work === undefined || kept === undefined || tool === undefined) {
    throw new Error('no call to undo');
  }
  const { call, turn, step, key, text, blob } = kept;
  const { definition, contextBlob } = run.state.config;
  const { context, rules } = run.input;
  const input: RunFunctionInput = {
    function: 'undo',
    definition: definition.hash,
    turn,
    step,
    call,
    effect: tool.effect,
    key,
    result: { text, ...(blob && { blob }) },
    ...(rules && { rules }),
    ...(work.approved && { approved: true }),
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
  return activityStart('runFunction', input, undoActivity(tool, `undo ${callSummary(call)}`));
}
