import type { Agent } from '../agents/agent.js';
import { InputError } from '../core/errors.js';
import { type Json, canonicalJson, isObject, parseJson, textField } from '../core/text/json.js';
import type { RecordedReply } from '../core/transcript/outcome.js';
import { INVOKE } from '../core/transcript/catalog.js';
import { type Model, ModelError, type ModelReply, type ModelRequest } from '../models/model.js';
import type { ModelFacts } from '../models/model-entry.js';
import { callShape } from '../core/transcript/message-shapes.js';
import type { ToolCall } from '../core/transcript/messages.js';
import { CallFault } from '../tools/arguments/check-arguments.js';
import { toPlain } from '../tools/result/plain.js';
import { type Tool, createToolRegistry } from '../tools/tool.js';
import { ToolError } from '../tools/errors.js';
import {
  type ComparedCall,
  type Divergence,
  comparedCall,
  createDivergence,
  nearestCall,
} from './divergence.js';
import type { RecordedFact, RecordedRun, Recording } from './recording.js';

type FactOf<T extends RecordedFact['type']> = Extract<RecordedFact, { readonly type: T }>;

/** A fact of one type, and the run that it belongs to. */
interface Placed<T extends RecordedFact['type']> {
  readonly run: RecordedRun;
  readonly fact: FactOf<T>;
}

/** Returns the facts of a type of all runs, in the order in which they happened. */
export function factsOf<T extends RecordedFact['type']>(
  { runs }: Recording,
  type: T,
): readonly Placed<T>[] {
  return runs
    .flatMap((run) =>
      run.facts
        .filter((fact): fact is FactOf<T> => fact.type === type)
        .map((fact) => ({ run, fact })),
    )
    .toSorted((one, other) => one.fact.at - other.fact.at);
}

/** What the recording lacked first. After it, no model is called any more. */
export interface Found {
  divergence: Divergence | null;
  /** The first request that the recording has no decision about; it may have expired there, too. */
  request: Divergence | null;
}

const STOPPED = { kind: 'request', type: 'diverged' } as const;

/** What the recorded model did: it replied, or failed for the last time. */
interface RecordedCall {
  readonly run: RecordedRun;
  readonly fact: FactOf<'reply'> | FactOf<'failure'>;
  /** The last message of its prompt. */
  readonly before: string;
  isUsed: boolean;
}

/**
 * Returns a model that gives the recorded replies. A request gets the next reply to the same last
 * message, which tells runs apart that happened at once, or else the next reply.
 */
export function recordedModel(recording: Recording, found: Found): Model & ModelFacts {
  const replies = factsOf(recording, 'reply').map(({ run, fact }): RecordedCall => {
    return { run, fact, before: lastTextBefore(run, fact), isUsed: false };
  });
  const all = [...replies, ...finalFailures(recording)].toSorted(
    (one, other) => one.fact.at - other.fact.at,
  );
  const [root] = recording.runs;
  return {
    ...(root && factsOfModel(root)),
    async call(request, { signal }) {
      // A call that was canceled has no reply.
      await new Promise<void>((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      stopAfter(found);
      const last = request.messages.at(-1)?.text ?? '';
      const open = all.filter(({ isUsed }) => !isUsed);
      const next = open.find(({ before }) => before === last) ?? open[0];
      if (next === undefined) {
        const { run, fact } = replies.at(-1) ?? {};
        found.divergence ??= createDivergence({
          agent: run?.agent ?? '',
          turn: fact?.type === 'reply' ? fact.turn : 1,
          step: fact?.type === 'reply' ? fact.step + 1 : 1,
          kind: 'model',
          actual: last,
          recorded: null,
        });
        throw stopped(found.divergence);
      }
      next.isUsed = true;
      if (next.fact.type === 'reply') return toModelReply(next.fact.reply, recording, request);
      const { type, message } = next.fact.error;
      throw new ModelError(message, { kind: 'request', type });
    },
  };
}

/** Returns the facts of the model of a run, with which its limits and its compaction are computed. */
export function factsOfModel({ price, window }: RecordedRun): ModelFacts {
  return { ...(price && { price }), ...(window !== undefined && { window }) };
}

/** Returns the failures of model calls that no later reply to the same prompt has made good. */
function finalFailures(recording: Recording): readonly RecordedCall[] {
  return factsOf(recording, 'failure').flatMap(({ run, fact }): readonly RecordedCall[] => {
    if (fact.activity !== 'callModel' || !isObject(fact.input)) return [];
    const { turn, step, upTo } = fact.input;
    const isMadeGood = run.facts.some(
      (one) =>
        one.at >= fact.at &&
        ((one.type === 'reply' && one.turn === turn && one.step === step) ||
          (one !== fact &&
            one.type === 'failure' &&
            isObject(one.input) &&
            one.input['turn'] === turn &&
            one.input['step'] === step &&
            run.facts.indexOf(one) > run.facts.indexOf(fact))),
    );
    if (isMadeGood) return [];
    return [{ run, fact, before: run.messages[Number(upTo) - 1]?.text ?? '', isUsed: false }];
  });
}

/** Returns a model that is called as it is, until the recording lacks something. */
export function candidateModel(model: Model, found: Found): Model {
  return {
    ...model,
    async call(request, context) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      context.signal.throwIfAborted();
      stopAfter(found);
      return await model.call(request, context);
    },
  };
}

function stopAfter({ divergence }: Found): void {
  if (divergence !== null) throw stopped(divergence);
}

function stopped({ text }: Divergence): ModelError {
  return new ModelError(`the rerun has diverged: ${text}`, STOPPED);
}

function lastTextBefore({ messages }: RecordedRun, { turn, step, reply }: FactOf<'reply'>): string {
  const text = isObject(reply) ? textField(reply, 'text') : '';
  const at = messages.findIndex(
    (one) =>
      one.role === 'assistant' && one.turn === turn && one.step === step && one.text === text,
  );
  return at <= 0 ? '' : (messages[at - 1]?.text ?? '');
}

/** Returns a recorded reply as its model gave it. */
function toModelReply(
  value: Json,
  recording: Recording,
  { tools, responseFormat }: ModelRequest,
): ModelReply {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the history's own form of a reply
  const reply = value as unknown as RecordedReply;
  const { text, blob, calls = [], finish, usage, provider } = reply;
  const whole = blob === undefined ? text : (recording.blobs[blob.sha256] ?? text);
  const items = provider?.items;
  const named = calls.map(({ name, arguments: args, blob: large, via }) => {
    const given = large === undefined ? args : (recording.blobs[large.sha256] ?? args);
    if (via === undefined) return { name, arguments: given };
    return { name: INVOKE, arguments: `{"arguments":${given},"tool":${JSON.stringify(name)}}` };
  });
  const { inputTokens, outputTokens, cachedTokens } = usage;
  const common = {
    usage: { inputTokens, outputTokens, cachedTokens },
    ...(provider !== undefined &&
      items !== undefined && { provider: { from: provider.from, items } }),
  };
  // A decision under a schema was the text of the reply, and is read again.
  const [decided] = named;
  const isRefused = reply.parsed?.ok === false;
  if (responseFormat?.name === 'decision' && tools.length === 0 && !isRefused) {
    const made =
      decided === undefined
        ? { action: 'answer', answer: parseJson(whole) ?? whole }
        : { action: decided.name, arguments: parseJson(decided.arguments) };
    return { text: JSON.stringify({ decision: made }), calls: [], finish: 'stop', ...common };
  }
  return { text: whole, calls: named, finish, ...common };
}

/** A live tool for a rerun: only one with the effect `read`. */
export type LiveTools = Readonly<Record<string, Tool>>;

/** Throws an `InputError` for a live tool that has a side effect. */
export function checkLiveTools(tools: LiveTools): void {
  for (const [name, tool] of Object.entries(tools)) {
    if (tool.effect === 'read') continue;
    throw new InputError(
      `tools.${name}: expected a tool with the effect "read", got "${tool.effect}"; a rerun never executes side effects`,
    );
  }
}

/**
 * Returns the agent, and those that it calls, with tools that give the recorded results. Throws an
 * `InputError` for an agent with MCP servers, whose tools are not known here.
 */
export function withRecordedTools(
  agent: Agent,
  recording: Recording,
  { live, found }: { readonly live: LiveTools; readonly found: Found },
): Agent {
  const results = recordedResults(recording);
  const documents = factsOf(recording, 'activity').filter(
    ({ fact }) => fact.activity === 'retrieveDocuments',
  );
  const made = new Map<Agent, Agent>();
  const replace = (one: Agent): Agent => {
    const known = made.get(one);
    if (known !== undefined) return known;
    if (one.mcp.length > 0) {
      throw new InputError(
        `agent "${one.name}": mcp: expected no MCP servers, got ${one.mcp.length}; a rerun connects to none`,
      );
    }
    const tools = one.tools.tools.map((tool) => {
      const own = live[tool.name];
      return own === undefined
        ? recordedTool(tool, { agent: one.name, results, recording, found })
        : own;
    });
    const copy = {
      ...one,
      tools: createToolRegistry(tools),
      agents: [] as readonly Agent[],
      retrieve: one.retrieve && {
        ...one.retrieve,
        find: (
          _query: unknown,
          { run }: { readonly run: { readonly id: string; readonly turn: number } },
        ) => documentsOf(documents, run),
      },
      // It would save the turn a second time.
      remember: one.remember && { ...one.remember, save: () => undefined },
    };
    made.set(one, copy);
    copy.agents = one.agents.map(replace);
    return copy;
  };
  return replace(agent);
}

interface OpenResult extends ComparedCall {
  readonly result: Json;
  readonly step: number;
  isUsed: boolean;
}

/** The ends of executions; a call that was only checked, or was not begun, has none. */
const EXECUTED: readonly unknown[] = [true, false, 'unknown'];

function recordedResults(recording: Recording): OpenResult[] {
  const ended = factsOf(recording, 'result').flatMap(({ fact: { at, call, result, step } }) =>
    isObject(result) && EXECUTED.includes(result['ok']) ? [{ at, call, result, step }] : [],
  );
  // The worker died in the call, or the call timed out.
  const lost = factsOf(recording, 'failure').flatMap(({ fact: { at, activity, input, error } }) => {
    if (activity !== 'runTool' || !isObject(input) || !isCall(input['call'])) return [];
    const result = { ok: 'unknown', message: error.message };
    return [{ at, call: input['call'], result, step: Number(input['step'] ?? 0) }];
  });
  return [...ended, ...lost]
    .toSorted((one, other) => one.at - other.at)
    .map(({ call, result, step }) => {
      const { parsed, blob } = call;
      const large = (parsed === undefined ? blob : parsed.blob)?.sha256;
      const args = parsed?.arguments ?? call.arguments;
      const whole = large === undefined ? args : (recording.blobs[large] ?? args);
      return {
        ...comparedCall({ name: call.name, arguments: whole }),
        result,
        step,
        isUsed: false,
      };
    });
}

function isCall(value: unknown): value is ToolCall {
  return callShape(value, '') === null;
}

function recordedTool(
  tool: Tool,
  {
    agent,
    results,
    recording,
    found,
  }: {
    readonly agent: string;
    readonly results: OpenResult[];
    readonly recording: Recording;
    readonly found: Found;
  },
): Tool {
  return {
    ...tool,
    async executeParsed(input, { run }) {
      const call: ComparedCall = { tool: tool.name, arguments: toPlain(input) };
      const text = canonicalJson(call.arguments);
      const same = results.filter(
        (one) => one.tool === tool.name && canonicalJson(one.arguments) === text,
      );
      const next =
        same.find(({ isUsed }) => !isUsed) ?? (tool.effect === 'read' ? same.at(-1) : undefined);
      if (next !== undefined) {
        next.isUsed = true;
        return valueOf(next.result, recording);
      }
      const atStep = results.find((one) => !one.isUsed && one.step === run.step);
      found.divergence ??= createDivergence({
        agent,
        turn: run.turn,
        step: run.step,
        kind: 'call',
        actual: { ...call },
        recorded: atStep === undefined ? null : { tool: atStep.tool, arguments: atStep.arguments },
        nearest: nearestCall(
          call,
          results.map(({ tool: name, arguments: args }) => ({ tool: name, arguments: args })),
        ),
      });
      throw new ToolError(`not in the recording: ${found.divergence.text}`);
    },
  };
}

/** Returns what a tool returned, or throws what it threw. */
function valueOf(result: Json, { blobs }: Recording): unknown {
  if (!isObject(result)) return null;
  const { ok, output, artifact, blob } = result;
  const text = textField(result, 'text');
  if (ok === 'unknown') throw new CallFault('unanswered', textField(result, 'message'));
  if (ok !== true) throw recordedError(text);
  if (output !== undefined) return output;
  const stored = [artifact, { blob }].find(
    (one): one is { blob: { sha256: string } } =>
      isObject(one) && isObject(one['blob']) && typeof one['blob']['sha256'] === 'string',
  );
  if (stored === undefined) return text;
  const whole = blobs[stored.blob.sha256] ?? text;
  return isObject(artifact) && artifact['text'] !== true ? parseJson(whole) : whole;
}

/** Returns the error whose text the model read: a `ToolError` is passed on as it is. */
function recordedError(text: string): ToolError {
  const value = parseJson(text);
  const message =
    isObject(value) && isObject(value['error']) ? textField(value['error'], 'message') : text;
  return new ToolError(message);
}

const FRAME = /^[^\n]*\n<document [^\n]*>\n([^]*)\n<\/document>$/;

/** Returns the documents that were retrieved for a turn, without the frames in which the model reads them. */
function documentsOf(
  recorded: readonly Placed<'activity'>[],
  { id, turn }: { readonly id: string; readonly turn: number },
) {
  const fact = recorded.find(
    (one) => one.run.id === id && isObject(one.fact.input) && one.fact.input['turn'] === turn,
  )?.fact;
  const documents = isObject(fact?.result) ? fact.result['documents'] : [];
  const list: readonly unknown[] = Array.isArray(documents) ? documents : [];
  return list.filter(isObject).map((one) => {
    const { id: name, source } = one;
    const text = textField(one, 'text');
    return {
      text: FRAME.exec(text)?.[1]?.replaceAll('&lt;', '<') ?? text,
      ...(typeof name === 'string' && { id: name }),
      ...(typeof source === 'string' && { source }),
    };
  });
}
