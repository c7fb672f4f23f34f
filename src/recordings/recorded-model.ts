import { isObject, parseJson } from '../core/text/json.js';
import { INVOKE } from '../core/transcript/catalog.js';
import type { RecordedReply } from '../core/transcript/outcome.js';
import type { CurrentActivity } from '../memory/attempt.js';
import {
  type Model,
  ModelError,
  type ModelErrorKind,
  type ModelReply,
  type ModelRequest,
  type TokenLogprob,
  isModelError,
} from '../models/model.js';
import { type ModelFacts, withCall } from '../models/model-entry.js';
import { type Classification, getClassKeys } from '../output/classes/classes.js';
import { type Divergence, type Found, createDivergence } from './divergence.js';
import { generatedReplies, nodePlaceOf } from './generated-replies.js';
import { abortOf } from './recorded-results.js';
import { type FactOf, type RecordedRun, type Recording, factsOf, isMidTurn } from './recording.js';

const STOPPED = { kind: 'request', type: 'diverged' } as const;

/** What the recorded model did: it replied, or failed for the last time. */
interface RecordedCall extends CallPlace {
  readonly end: RecordedReply | FactOf<'failure'>['error'];
  /** The answers that the reply sums up; null if it is the answer of one call. */
  readonly votes: readonly string[] | null;
  /** How often it was given: once for each vote. */
  given: number;
}

/** The place of a model call: a run has one reply for each. */
interface CallPlace {
  readonly run: string;
  readonly turn: number;
  readonly step: number;
  /** True for a call that summarizes older messages, which is not a step. */
  readonly isSummary: boolean;
}

/**
 * Returns a model that gives the recorded replies: to each call the reply of the same run, turn, and
 * step, and to the function of a node the reply to the same request. A call without one is a
 * divergence. `current` returns the activity that makes the call.
 */
export function recordedModel(
  recording: Recording,
  { found, current }: { readonly found: Found; readonly current: () => CurrentActivity | null },
): Model & ModelFacts {
  const all = [...recordedReplies(recording), ...finalFailures(recording)];
  const generated = generatedReplies(recording);
  const [root] = recording.runs;
  return {
    ...(root && factsOfModel(root)),
    async call(request, { signal }) {
      // A call that was canceled has no reply.
      await new Promise<void>((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      stopAfter(found);
      const activity = current();
      const node = activity && nodePlaceOf(activity);
      const reply = node === null ? undefined : generated.reply(request, node);
      if (reply !== undefined) return reply;
      const place = activity && placeOf(activity);
      const next = callAt(all, place, recording);
      if (next === undefined && activity !== null && wasInFlight(place, recording)) {
        await activity.wait(async () => await abortOf(signal));
        signal.throwIfAborted();
      }
      if (next === undefined) {
        found.divergence ??= unrecorded(request, activity, recording);
        throw stopped(found.divergence);
      }
      next.given += 1;
      const { end } = next;
      if ('text' in end) return toModelReply(end, { ...next, recording, request });
      throw new ModelError(end.message, { kind: 'request', type: end.type });
    },
  };
}

function recordedReplies(recording: Recording): readonly RecordedCall[] {
  return factsOf(recording, 'reply').map(({ run, fact }) => {
    const { turn, step, summary: isSummary = false } = fact;
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the history's own form of a reply
    const end = fact.reply as unknown as RecordedReply;
    return { run: run.id, turn, step, isSummary, end, votes: votesOf(end, run), given: 0 };
  });
}

/** Returns the failures of model calls that no later reply to the same prompt has made good. */
function finalFailures(recording: Recording): readonly RecordedCall[] {
  return factsOf(recording, 'failure').flatMap(({ run, fact }): readonly RecordedCall[] => {
    if (fact.activity !== 'callModel' || !isObject(fact.input)) return [];
    const { turn, step, compact } = fact.input;
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
    const place = { turn: Number(turn), step: Number(step), isSummary: compact !== undefined };
    return [{ run: run.id, ...place, end: fact.error, votes: null, given: 0 }];
  });
}

/** Returns the place of the call that an activity makes; null if it runs a function of the author. */
function placeOf({ activity, run, input }: CurrentActivity): CallPlace | null {
  if (activity !== 'callModel' || !isObject(input)) return null;
  const { turn, step, compact } = input;
  return { run, turn: Number(turn), step: Number(step), isSummary: compact !== undefined };
}

function callAt(
  all: readonly RecordedCall[],
  place: CallPlace | null,
  { runs }: Recording,
): RecordedCall | undefined {
  if (place === null) return undefined;
  const { run, turn, step, isSummary } = place;
  const here = all.filter((one) => one.run === run && one.turn === turn && one.step === step);
  const open = here.filter((one) => one.given < (one.votes?.length ?? 1));
  const recorded = runs.find(({ id }) => id === run);
  const isDecided = recorded?.definitions.some(({ decide }) => decide === 'function') === true;
  // The reply is the decision that the function made, and none that its model gave it.
  if (isDecided && !isSummary) return undefined;
  const next = open.find((one) => one.isSummary === isSummary);
  if (next !== undefined || !isSummary) return next;
  // Older recordings do not say which replies are summaries. A step's own reply is its last.
  return open.find((one) => one !== here.at(-1));
}

/** Whether the recording of an open run ends with this call, to which no reply had come yet. */
function wasInFlight(place: CallPlace | null, { runs }: Recording): boolean {
  const run = runs.find(({ id }) => id === place?.run);
  if (place === null || run === undefined || !isMidTurn(run)) return false;
  return run.facts.every(
    (fact) =>
      fact.type !== 'reply' ||
      fact.turn < place.turn ||
      (fact.turn === place.turn && fact.step < place.step),
  );
}

function unrecorded(
  { messages }: ModelRequest,
  activity: CurrentActivity | null,
  { runs }: Recording,
): Divergence {
  const { run = '', input } = activity ?? {};
  const { turn, step } = isObject(input) ? input : {};
  return createDivergence({
    agent: runs.find(({ id }) => id === run)?.agent ?? run,
    turn: Number(turn ?? 1),
    // The call of a node's function does not belong to a step.
    step: activity !== null && nodePlaceOf(activity) !== null ? 0 : Number(step ?? 0),
    kind: 'model',
    actual: messages.at(-1)?.text ?? '',
    recorded: null,
  });
}

/** Returns the facts of the model of a run, with which its limits and its compaction are computed. */
export function factsOfModel({ price, window }: RecordedRun): ModelFacts {
  return { ...(price && { price }), ...(window !== undefined && { window }) };
}

/** The kinds of errors that the next call would get, too: no time passes in a rerun in which that changes. */
const LASTING: readonly ModelErrorKind[] = ['credentials', 'model', 'quota'];

/**
 * Returns a model that is called as it is, until the recording lacks something, or the model rejects each call.
 */
export function candidateModel(model: Model, found: Found): Model {
  let lasting: ModelError | null = null;
  return withCall(model, async (request, context) => {
    await new Promise<void>((resolve) => setImmediate(resolve));
    context.signal.throwIfAborted();
    stopAfter(found);
    if (lasting !== null) throw lasting;
    try {
      const reply = await model.call(request, context);
      found.failure = null;
      return reply;
    } catch (error) {
      // A call that its run has canceled did not fail.
      if (!context.signal.aborted) {
        found.failure = error;
        if (isModelError(error) && LASTING.includes(error.details.kind)) lasting = error;
      }
      throw error;
    }
  });
}

function stopAfter({ divergence }: Found): void {
  if (divergence !== null) throw stopped(divergence);
}

function stopped({ text }: Divergence): ModelError {
  return new ModelError(`the rerun has diverged: ${text}`, STOPPED);
}

interface Given extends Pick<RecordedCall, 'votes' | 'given'> {
  readonly recording: Recording;
  readonly request: ModelRequest;
}

/** Returns a recorded reply as its model gave it. */
function toModelReply(
  reply: RecordedReply,
  { recording, request, votes, given: times }: Given,
): ModelReply {
  const { tools, responseFormat } = request;
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
  if (votes !== null) {
    // The recorded usage is that of all votes.
    const used = times === 1 ? common : { usage: NOTHING_USED };
    return { text: votes[times - 1] ?? '', calls: [], finish: 'stop', ...used };
  }
  if (request.logprobs !== undefined) {
    return { text: whole, calls: [], finish, logprobs: logprobsOf(reply), ...common };
  }
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

const NOTHING_USED = { inputTokens: 0, outputTokens: 0, cachedTokens: 0 };

/** Returns the class that a reply gave, with all probabilities; null for any other reply. */
function classification({ parsed }: RecordedReply): Classification | null {
  const output = parsed?.ok === true ? parsed.output : null;
  if (!isObject(output) || !Array.isArray(output['classes'])) return null;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the history's own form of an output
  return output as unknown as Classification;
}

/** Returns answers with the recorded share of each class; null if the run's agent does not sample. */
function votesOf(reply: RecordedReply, { definitions }: RecordedRun): readonly string[] | null {
  const isSampled = definitions.some(
    ({ output }) => output?.type === 'classes' && output.samples !== undefined,
  );
  if (!isSampled) return null;
  const known = classification(reply);
  if (known === null) {
    const texts = parseJson(reply.text);
    return Array.isArray(texts) ? texts.map(String) : null;
  }
  const { samples = 1, outside, classes } = known;
  const keys = getClassKeys(classes.map(({ name }) => name));
  const valid = Math.round((1 - outside) * samples);
  const named = classes.flatMap(({ probability }, index) =>
    Array<string>(Math.round(probability * valid)).fill(keys[index] ?? ''),
  );
  return [...named, ...Array<string>(Math.max(0, samples - named.length)).fill('')];
}

/** Returns tokens from which the recorded probabilities are computed again. */
function logprobsOf(reply: RecordedReply): readonly TokenLogprob[] {
  const known = classification(reply);
  if (known === null) return [{ token: reply.text, logprob: 0, top: [] }];
  const { classes, outside, unseen, best } = known;
  const keys = getClassKeys(classes.map(({ name }) => name));
  const top = classes.flatMap(({ name, probability }, index) => {
    const logprob = Math.log(probability * (1 - outside));
    return unseen.includes(name) ? [] : [{ name, token: keys[index] ?? '', logprob }];
  });
  const [first] = top.toSorted(
    (one, other) => Number(other.name === best) - Number(one.name === best),
  );
  return first === undefined
    ? []
    : [{ ...first, top: top.map(({ token, logprob }) => ({ token, logprob })) }];
}
