import { TOOL_BLOCKS } from '../core/blocked.js';
import type { RetrieveInput } from '../core/contract.js';
import { promptLength } from '../core/transcript/transcript.js';
import { WORK } from '../core/work/work.js';
import { retrieveActivity } from './activities.js';
import type { RunContext } from './run-context.js';
import { blobCheck, blockedField, startable, tend } from './tend.js';

/** Retrieves documents: one activity, whose input does not grow with the conversation. */
export function retrieve(run: RunContext, asked: number): Promise<unknown> {
  const activity = retrieveActivity(run.state.config);
  const input = retrieveInput(run, asked);
  return tend(run, {
    name: WORK.retrieve,
    doing: WORK.retrieve,
    activity: (step) => {
      if (step.as === 'check') return blobCheck(WORK.retrieve, step);
      const given = { ...input, ...blockedField(step, TOOL_BLOCKS) };
      return startable('retrieveDocuments', given, activity);
    },
  });
}

function retrieveInput({ state, input }: RunContext, asked: number): RetrieveInput {
  const { definition, contextBlob } = state.config;
  const { context } = input;
  return {
    upTo: promptLength(state.transcript),
    head: state.transcript.head,
    definition: definition.hash,
    turn: state.turn.number,
    asked,
    ...(contextBlob ? { contextBlob } : context !== undefined && { context }),
  };
}
