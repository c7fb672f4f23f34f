import { findTool } from '../calls/batch.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { shownActions } from '../plan/confirm-plan.js';
import type { RunState } from '../state/state.js';
import { findNode, graphOf, leavesByExpired, nodeOfCall } from '../state/turn-definition.js';
import { type AskingWork, type CallWork, type Work, callOfWork, isUndo } from '../state/work.js';
import { type Json, canonicalJson, sha256Hex } from '../text/json.js';
import type { ParsedArguments, ToolCall } from '../transcript/messages.js';
import {
  type DecisionKind,
  type LimitReached,
  type RecordedLimit,
  OFFERED,
  type Request,
  type RequestKind,
  type ServerAsk,
} from '../transcript/request.js';
import { leftForCall, reachedText } from '../rules/limit-text.js';
import { fixFor } from './commands.js';
import { limitWords } from './limit-words.js';
import { limitText, printedLine, questionOf, textOfRequest } from './presentation.js';
import { limitOf } from './raise-requests.js';
import { askOf } from './server-ask.js';

/** Returns the public form of a request. `run`: the run's workflow id, for the commands. */
export function toRequest(state: RunState, work: AskingWork, run: string): Request {
  const { request } = work;
  const call = callOfWork(state, work.name);
  const tool = call && findTool(state, call.name);
  const { id, kind, why, raisedAt, expiresAt = null, deciders = [], limit, definition } = request;
  const undo = isUndo(work);
  const ask = askOf(work);
  const round = ask && `${work.asked?.rounds}.${work.asked?.answers.length}`;
  const about = {
    run: state.firstRunId ?? '',
    // An earlier version did not cover it, and the history of its run has decisions by that digest.
    ...(state.config.revised && { request: id }),
    kind,
    call,
    tool,
    limit,
    definition,
    undo,
    ask,
    round,
  };
  const digest = requestDigest(about);
  const decisions = offered(kind, work);
  const given = call && call.blob === undefined ? { arguments: call.arguments } : {};
  const limited = limit === undefined ? {} : { limit: limitOf(state, { limit, raisedAt }) };
  const form = definition === undefined ? {} : { definition };
  return {
    id,
    kind,
    ...(call && { call: call.id, tool: call.name }),
    // The effects of a plan are those of the tools that it calls.
    ...(call && tool && kind !== 'plan' && { effect: tool.effect }),
    ...(call?.blob && { argumentsBlob: call.blob }),
    ...given,
    ...(call?.parsed && parsedOf(call.parsed)),
    digest,
    shown: limited.limit ? limitText(limited.limit) : textOfRequest(work, call, tool),
    ...(call?.summary !== undefined && { summary: printedLine(call.summary) }),
    why: limit === undefined ? why : limitWhy(state, limited.limit, why),
    ...requesterOf(state, work),
    raisedAt,
    expiresAt,
    onExpiry: kind === 'limit' ? 'stop' : onExpiryOf(state, call),
    decisions,
    deciders,
    fix: fixFor(
      run,
      { id, kind, digest, ...given, ...limited, ...form, ...ask, ...(call && { tool: call.name }) },
      decisions,
    ),
    ...(ask && serverAskOf(ask, tool)),
    ...(!ask && (kind === 'question' || kind === 'plan') && call && questionOf(call)),
    ...(kind === 'client_tool' && tool?.result && { result: tool.result }),
    ...(kind === 'plan' && call && effectsOf(state, call)),
    ...(call?.safety && { checks: call.safety }),
    ...(undo && call && executedOf(state, call)),
    ...limited,
    ...(kind === 'outcome_unknown' && { idempotencyKey: work.key ?? '' }),
    ...form,
    ...(work.proposal ? { checking: true } : refusedOf(state, id)),
  };
}

/** Returns why a request about a limit was raised. An earlier version sends another text in its notices. */
function limitWhy(state: RunState, reached: LimitReached | undefined, why: string): string {
  if (reached === undefined || !state.config.revised) return why;
  if (leftForCall(state, reached.name) === null) return why;
  return reachedText(state, reached.name, limitWords(reached));
}

/** Returns when a call was executed that an undo is about. The digest does not cover it. */
function executedOf({ kept = [], transcript }: RunState, { id }: ToolCall): Pick<Request, 'undo'> {
  const found = kept.find(({ call }) => call.id === id);
  if (found === undefined) return {};
  if (found.executed !== undefined) return { undo: found.executed };
  const { turn, step } = found;
  const result = transcript.messages.findLast(
    (message) => message.role === 'tool' && message.callId === id,
  );
  return { undo: { turn, step, ...(result && { at: result.at }) } };
}

/** Returns who has asked for what the request is about. */
function requesterOf(
  { turn, config }: RunState,
  work: AskingWork,
): Pick<Request, 'requester' | 'requesterDoor'> {
  const isOfUndo = isUndo(work) && config.revised === true;
  const { by, door } = isOfUndo ? work : { by: turn.by?.[0], door: turn.door };
  return { requester: by ?? null, ...(door !== undefined && { requesterDoor: door }) };
}

function onExpiryOf(state: RunState, call: ToolCall | undefined): Request['onExpiry'] {
  const graph = graphOf(state);
  const node = call && graph && findNode(graph, nodeOfCall(call) ?? '');
  return node !== undefined && leavesByExpired(node) ? 'expired' : 'deny';
}

/** Returns why the newest decision about a request was refused after its check, if it was. */
function refusedOf({ decisions = [] }: RunState, id: string): Pick<Request, 'refused'> {
  const newest = decisions.findLast(({ request }) => request === id);
  return newest?.refused === undefined ? {} : { refused: newest.refused };
}

function serverAskOf(
  { message, form, url }: ServerAsk,
  tool: ToolDefinition | undefined,
): Partial<Request> {
  return {
    question: message,
    server: tool?.mcp?.server ?? '',
    ...(form && { form }),
    ...(url !== undefined && { url, options: ['done'] }),
  };
}

/** Returns the effect of each tool of a plan. */
function effectsOf(state: RunState, call: ToolCall): Pick<Request, 'effects'> {
  const effects = (shownActions(call.arguments) ?? []).flatMap(({ tool }) => {
    const found = findTool(state, tool);
    return found === undefined ? [] : [[tool, found.effect] as const];
  });
  return { effects: Object.fromEntries(effects) };
}

function parsedOf({
  arguments: parsed,
  blob,
}: ParsedArguments): Pick<Request, 'parsed' | 'parsedBlob'> {
  return blob === undefined ? { parsed } : { parsedBlob: blob };
}

function offered(kind: Request['kind'], work: CallWork): readonly DecisionKind[] {
  if (askOf(work) !== undefined) return ['answer', 'deny', 'abandon'];
  // An undo is about a call that has been made, so its arguments cannot change.
  return isUndo(work) ? ['approve', 'deny'] : OFFERED[kind];
}

/** The subject of a decision, which its digest covers. */
interface Subject {
  /** The run's first execution run id. */
  readonly run: string;
  /**
   * The id of the request. Without it, the request about a limit in the next turn, or about a call that has
   * been retried, would have the digest of the one before. Absent in a run that an earlier version began.
   */
  readonly request?: string;
  readonly kind: RequestKind;
  readonly call?: ToolCall | undefined;
  /** The run's pinned definition of the tool. */
  readonly tool?: ToolDefinition | undefined;
  readonly limit?: RecordedLimit | undefined;
  /** For `tool_changed`: hash of the tool's current form. */
  readonly definition?: string | undefined;
  /** The call has been made and would be undone. */
  readonly undo?: boolean;
  /** What the call's MCP server asks. */
  readonly ask?: ServerAsk | undefined;
  /** Which of its asks that is. */
  readonly round?: string | undefined;
}

/**
 * Returns the digest that a decision must specify: SHA-256 (hex) of canonical JSON. It covers the
 * run, the request, the call, the tool's whole pinned definition, and the arguments as written and as
 * the tool gets them. A decision therefore applies to no other call and no other arguments.
 */
function requestDigest(about: Subject): string {
  const { run, request, kind, call, tool, limit, definition, undo, ask, round = '' } = about;
  const subject: Json = {
    run,
    ...(request !== undefined && { request }),
    kind,
    ...(call && { call: call.id, tool: call.name, arguments: call.digest }),
    ...(call?.parsed && { parsed: call.parsed.digest }),
    ...(tool && { definition: toolDigest(tool) }),
    ...(limit && { limit: toJson(limit) }),
    ...(definition !== undefined && { form: definition }),
    ...(undo && { undo }),
    ...(ask && { ask: toJson(ask), round }),
  };
  return sha256Hex(canonicalJson(subject));
}

/** The digests of definitions, which the requests of all calls of a tool share. */
const toolDigests = new WeakMap<ToolDefinition, string>();

function toolDigest(tool: ToolDefinition): string {
  const digest = toolDigests.get(tool) ?? sha256Hex(canonicalJson(toJson(tool)));
  toolDigests.set(tool, digest);
  return digest;
}

/** Converts through JSON, because the history records the definition as JSON. */
function toJson(value: object): Json {
  const json: Json = JSON.parse(JSON.stringify(value));
  return json;
}

/** Returns the work that waits for decisions, oldest request first. */
export function askingWork({ work }: RunState): readonly AskingWork[] {
  const asking = work.filter(isAsking);
  if (asking.length < 2) return asking;
  return asking.toSorted((one, other) => numberOf(one) - numberOf(other));
}

function numberOf({ request }: AskingWork): number {
  return Number(request.id.slice(1));
}

function isAsking(work: Work): work is AskingWork {
  return work.request !== undefined;
}

/** Returns the open requests, oldest first. `run`: the run's workflow id, for the commands. */
export function openRequests(state: RunState, run: string): readonly Request[] {
  return askingWork(state).map((work) => toRequest(state, work, run));
}

/** Returns the open request with this id; undefined if there is none. Does not build the others. */
export function openRequest(
  state: RunState,
  { id, run }: { readonly id: string | undefined; readonly run: string },
): Request | undefined {
  const work = askingWork(state).find(({ request }) => request.id === id);
  return work && toRequest(state, work, run);
}
