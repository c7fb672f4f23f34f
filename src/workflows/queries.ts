import { setHandler } from '@temporalio/workflow';
import type { Resolution } from '../core/calls/call-results.js';
import { isObject } from '../core/json.js';
import { promptPage, rangeProblem, transcriptPage } from '../core/transcript/pages.js';
import {
  definitionQuery,
  pendingQuery,
  promptQuery,
  resolveUpdate,
  resumeUpdate,
  statusQuery,
  transcriptQuery,
} from './messages.js';
import { statusOf } from './visibility.js';
import { claimProblem, deciding, recordDecision } from './decide.js';
import { refusal } from './problem.js';
import { resume, type Session, tryAgain } from './run-context.js';
import { apply } from '../core/loop.js';

/** A result that a person gives goes into history and prompt as it is. */
const MAX_RESULT_CHARACTERS = 32_000;

/** Answers queries and takes updates. No handler waits for an activity, so none holds a segment open. */
export function answerQuestions(session: Session): void {
  setHandler(statusQuery, () => statusOf(session));
  setHandler(transcriptQuery, (range) => {
    refuse(rangeProblem('transcript', range));
    return transcriptPage(session.state.transcript, range ?? {});
  });
  setHandler(promptQuery, (range) => {
    refuse(rangeProblem('prompt', range, ['from', 'to']));
    return promptPage(session.state.transcript, range);
  });
  setHandler(pendingQuery, () => [...session.pending.values()]);
  setHandler(definitionQuery, () => session.state.config.definition);
  setHandler(
    resolveUpdate,
    (resolution) => {
      const { call, as } = resolution;
      const update = deciding(session);
      if (update.before !== undefined) return { resolved: call };
      if (as === 'accept') acceptTool(session, resolution);
      else session.resolutions.set(call, resolution);
      recordDecision(session, update, { what: 'resolve', call, as, claim: resolution });
      return { resolved: call };
    },
    { validator: (resolution) => refuseResolution(session, resolution) },
  );
  setHandler(
    resumeUpdate,
    (claim) => {
      const update = deciding(session);
      if (update.before === undefined) {
        resume(session);
        recordDecision(session, update, { what: 'resume', claim });
        session.changed();
      }
      return { resumed: true } as const;
    },
    { validator: (claim) => refuse(claimProblem(claim)) },
  );
}

/** The first decision wins; what names no open question is refused with the ones there are. */
function refuseResolution(session: Session, resolution: Resolution): void {
  if (!isObject(resolution)) throw refusal('resolve takes {call, as, result?}');
  refuse(claimProblem(resolution));
  if (deciding(session).before !== undefined) return;
  const { call, as } = resolution;
  if (as === 'accept') return refuseAcceptance(session, resolution);
  if (!['happened', 'retry', 'abandon'].includes(as)) {
    throw refusal(`as: ${JSON.stringify(as)} is none of happened, retry, abandon, accept`);
  }
  const size = jsonSize(resolution.result);
  if (size > MAX_RESULT_CHARACTERS) {
    throw refusal(
      `result: ${size} characters of JSON are more than ${MAX_RESULT_CHARACTERS}; give a summary`,
    );
  }
  if (session.resolutions.has(call)) throw refusal(`${call} is already resolved`);
  const pending = session.pending.get(call);
  if (pending?.type === 'safety_check' && as === 'happened') {
    throw refusal(`as: happened: ${call} was not executed; give retry (do it) or abandon`);
  }
  if (pending !== undefined) return;
  const open = [...session.pending.keys()];
  const known = open.length === 0 ? 'no call waits for a decision' : `waiting: ${open.join(', ')}`;
  throw refusal(`call: ${JSON.stringify(call)} does not wait for a decision; ${known}`);
}

function refuse(problem: string | null): void {
  if (problem !== null) throw refusal(problem);
}

function jsonSize(value: unknown): number {
  return value === undefined ? 0 : JSON.stringify(value).length;
}

/** A decision about a tool that has changed is one about the very form that was shown. */
function refuseAcceptance(session: Session, { call, definition }: Resolution): void {
  const offered = session.blocked.get(call)?.definition;
  if (offered === undefined) {
    const waiting = [...session.blocked].flatMap(([id, block]) => (block.definition ? [id] : []));
    const known = waiting.length === 0 ? 'none does' : `there are ${waiting.join(', ')}`;
    throw refusal(`call: ${JSON.stringify(call)} does not wait for a changed tool; ${known}`);
  }
  if (definition === offered) return;
  throw refusal(
    `definition: ${JSON.stringify(definition ?? null)} is not what the tool is now; look at the run again, it is "${offered}"`,
  );
}

/** Every call of the tool is made in this form from now on; if it changes once more, that blocks again. */
function acceptTool(session: Session, { call, definition = '' }: Resolution): void {
  const asked = session.state.turn.batch?.calls.find(({ id }) => id === call);
  if (asked !== undefined) {
    apply(session, { type: 'tool-accepted', tool: asked.name, definition });
  }
  tryAgain(session);
  session.changed();
}
