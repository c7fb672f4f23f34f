import { findTool } from '../calls/batch.js';
import { isObject, parseJson } from '../json.js';
import type { RunState } from '../state.js';
import type { ToolCall } from '../transcript/messages.js';
import { callOfWork, isUndo, type Work } from '../work/work.js';
import { requestDigest } from './digest.js';
import { OFFERED, type DecisionWord, type RaisedRequest, type Request } from './request.js';
import { shownCall } from './show-call.js';

/** Hex digits of a digest in a command; the command compares them with the whole one. */
export const SHOWN_DIGITS = 12;

/** Work that waits for a decision. */
export type AskingWork = Work & { readonly request: RaisedRequest };

/** Returns the work that waits for decisions, oldest request first. */
export function askingWork({ work }: RunState): readonly AskingWork[] {
  const asking = work.filter(isAsking);
  const number = ({ request }: AskingWork): number => Number(request.id.slice(1));
  return asking.length < 2 ? asking : asking.toSorted((one, other) => number(one) - number(other));
}

function isAsking(work: Work): work is AskingWork {
  return work.request !== undefined;
}

/** Returns the open requests, oldest first. `run`: the run's workflow id, for the commands. */
export function openRequests(state: RunState, run: string): readonly Request[] {
  return askingWork(state).map((work) => toRequest(state, work, run));
}

function toRequest(state: RunState, work: AskingWork, run: string): Request {
  const { request } = work;
  const call = callOfWork(state, work.name);
  const tool = call && findTool(state, call.name);
  const { id, kind, why, raisedAt, expiresAt = null, deciders = [], limit, definition } = request;
  const digest = requestDigest({
    run: state.firstRunId ?? '',
    kind,
    call,
    tool,
    limit,
    definition,
  });
  const decisions = offered(kind, work);
  return {
    id,
    kind,
    ...(call && { call: call.id, tool: call.name, ...(tool && { effect: tool.effect }) }),
    ...(call && (call.blob ? { argumentsBlob: call.blob } : { arguments: call.arguments })),
    digest,
    shown: shownRequest(work, call, tool),
    why,
    requester: state.turn.by?.[0] ?? null,
    raisedAt,
    expiresAt,
    onExpiry: kind === 'limit' ? 'stop' : 'deny',
    decisions,
    deciders,
    fix: fixFor({ run, id, kind, digest }),
    ...(kind === 'question' && call && questionOf(call)),
    ...(call?.safety && { checks: call.safety }),
    ...(limit && { limit }),
    ...(kind === 'outcome_unknown' && { idempotencyKey: work.key ?? '' }),
    ...(definition !== undefined && { definition }),
    ...(work.proposal && { checking: true }),
  };
}

function offered(kind: Request['kind'], { name }: Work): readonly DecisionWord[] {
  // What is undone is a call that has been made: its arguments stay as they are.
  return isUndo({ name }) ? ['approve', 'deny'] : OFFERED[kind];
}

function shownRequest(
  { name, request }: AskingWork,
  call: ToolCall | undefined,
  tool: ReturnType<typeof findTool>,
): string {
  const { limit } = request;
  if (limit !== undefined) {
    const most = limit.limit === null ? '' : ` of ${limit.limit}`;
    return `limit ${limit.name}: ${limit.used}${most} used`;
  }
  if (call === undefined) return '';
  return isUndo({ name }) ? `undo ${shownCall(call, tool)}` : shownCall(call, tool);
}

function questionOf(call: ToolCall): Pick<Request, 'question' | 'options'> {
  const value = parseJson(call.arguments);
  const { question, options } = isObject(value) ? value : {};
  const choices = Array.isArray(options) ? options.filter((one) => typeof one === 'string') : [];
  return {
    question: typeof question === 'string' ? question : '',
    ...(choices.length > 0 && { options: choices }),
  };
}

/** Returns the command that decides. A choice is left to the person, between `|`. */
function fixFor({
  run,
  id,
  kind,
  digest,
}: Pick<Request, 'id' | 'kind' | 'digest'> & { run: string }): string {
  const which = `${run} ${id} --digest ${digest.slice(0, SHOWN_DIGITS)}`;
  switch (kind) {
    case 'approval':
    case 'safety_check':
      return `perdure approve ${which}`;
    case 'question':
    case 'client_tool':
      return `perdure answer ${which} TEXT`;
    case 'limit':
      return `perdure resolve ${which} --as raise|stop`;
    case 'outcome_unknown':
      return `perdure resolve ${which} --as happened|retry|abandon [--result JSON]`;
    case 'tool_changed':
      return `perdure resolve ${which} --as accept|deny`;
  }
}
