import { voteClasses } from '../../output/classes/vote.js';
import {
  countAlternatives,
  classifyInstruction,
  classifyReminder,
  CLASSIFY_OUTPUT_TOKENS,
} from '../../output/classes/instruction.js';
import { scoreClasses } from '../../output/classes/score.js';
import type { OutputDefinition } from '../../core/definition/definition.js';
import { parseJson, type Json } from '../../core/json.js';
import type { ParsedAnswer } from '../../core/reply.js';
import { ModelError } from '../../models/model-error.js';
import type { Model, ModelReply, ModelRequest, ModelUsage } from '../../models/model.js';

type Classes = Extract<OutputDefinition, { type: 'classes' }>;

/** Returns a request for a class, after the messages to classify. */
export function classRequest(request: ModelRequest, { classes, samples }: Classes): ModelRequest {
  const question = { role: 'user', text: classifyInstruction(classes) } as const;
  const withQuestion = { ...request, messages: [...request.messages, question] };
  if (samples !== undefined) return withQuestion;
  const settings = {
    ...request.settings,
    temperature: 0,
    maxOutputTokens: Math.min(
      CLASSIFY_OUTPUT_TOKENS,
      request.settings.maxOutputTokens ?? CLASSIFY_OUTPUT_TOKENS,
    ),
  };
  return { ...withQuestion, settings, logprobs: { top: countAlternatives(classes) } };
}

/**
 * Requests a class: once by the probabilities of tokens, or as often as the agent's `samples`.
 * Throws a `ModelError` if the model returns no probabilities, or if half of the samples or more
 * failed.
 */
export async function callForClass(
  model: Model,
  request: ModelRequest,
  { signal, output }: { signal: AbortSignal; output: Classes },
): Promise<ModelReply> {
  if (output.samples === undefined) {
    const reply = await model.call(request, { signal });
    if (reply.logprobs !== undefined || reply.finish === 'refused') return reply;
    throw new ModelError(
      `model "${request.model}" returns no token probabilities; use another model, or sample ` +
        'several answers: classify(classes, { samples: 10 })',
      { kind: 'request', type: 'no_logprobs' },
    );
  }
  const times = Array.from({ length: output.samples });
  const ends = await Promise.allSettled(times.map(() => model.call(request, { signal })));
  const replies = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
  const [first] = replies;
  // The replies have been paid for: if most samples succeeded, the failed ones are not repeated.
  if (first === undefined || replies.length * 2 < ends.length) throw firstFailure(ends);
  const usage = sumUsage(replies);
  const text = JSON.stringify(replies.map((reply) => reply.text));
  const { usage: _, ...rest } = first;
  return { ...rest, finish: 'stop', text, ...(usage && { usage }) };
}

/** Returns the reply with the best class as its text, and the probability of each class. */
export function parseClassReply(
  reply: ModelReply,
  { classes, samples }: Classes,
): { readonly reply: ModelReply; readonly parsed?: ParsedAnswer } {
  if (reply.finish !== 'stop' && reply.finish !== 'length') return { reply };
  const scored =
    samples === undefined
      ? scoreClasses(classes, reply.logprobs ?? [])
      : voteClasses(classes, parseAnswers(reply.text));
  if (!scored.ok) {
    const problem = `${scored.problem} ${classifyReminder(classes)}`;
    return { reply: { ...reply, finish: 'stop' }, parsed: { ok: false, problem } };
  }
  const output: Json = { ...scored.classification };
  const answer = { ...reply, text: scored.classification.best, finish: 'stop' as const };
  return { reply: answer, parsed: { ok: true, output } };
}

function firstFailure(ends: readonly PromiseSettledResult<unknown>[]): unknown {
  const failed = ends.find((end) => end.status === 'rejected');
  return failed?.reason ?? new Error('there are no samples');
}

function parseAnswers(text: string): readonly string[] {
  const answers = parseJson(text);
  return Array.isArray(answers) ? answers.filter((answer) => typeof answer === 'string') : [];
}

/**
 * Returns the usage of all replies. Undefined if one of them reports none; the usage is then
 * estimated.
 */
function sumUsage(replies: readonly ModelReply[]): ModelUsage | undefined {
  return replies.reduce<ModelUsage | undefined>(
    (sum, { usage }) =>
      sum && usage
        ? {
            inputTokens: sum.inputTokens + usage.inputTokens,
            outputTokens: sum.outputTokens + usage.outputTokens,
            cachedTokens: sum.cachedTokens + usage.cachedTokens,
            cacheWriteTokens: (sum.cacheWriteTokens ?? 0) + (usage.cacheWriteTokens ?? 0),
          }
        : undefined,
    { inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  );
}
