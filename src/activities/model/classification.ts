import { voteClasses } from '../../output/classes/vote.js';
import {
  alternativesFor,
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

/** The question for a class, after all that is to be classified. */
export function classRequest(request: ModelRequest, { classes, samples }: Classes): ModelRequest {
  const question = { role: 'user', text: classifyInstruction(classes) } as const;
  const asked = { ...request, messages: [...request.messages, question] };
  if (samples !== undefined) return asked;
  const settings = {
    ...request.settings,
    temperature: 0,
    maxOutputTokens: Math.min(
      CLASSIFY_OUTPUT_TOKENS,
      request.settings.maxOutputTokens ?? CLASSIFY_OUTPUT_TOKENS,
    ),
  };
  return { ...asked, settings, logprobs: { top: alternativesFor(classes) } };
}

/** Asks for a class: once where the model tells probabilities, else as often as the agent says. */
export async function askForClass(
  model: Model,
  request: ModelRequest,
  { signal, output }: { signal: AbortSignal; output: Classes },
): Promise<ModelReply> {
  if (output.samples === undefined) {
    const reply = await model.call(request, { signal });
    if (reply.logprobs !== undefined || reply.finish === 'refused') return reply;
    throw new ModelError(
      `model "${request.model}" tells no probabilities of tokens; use another one, or let it be ` +
        'asked several times: classify(classes, { samples: 10 })',
      { kind: 'request', type: 'no_logprobs' },
    );
  }
  const times = Array.from({ length: output.samples });
  const ends = await Promise.allSettled(times.map(() => model.call(request, { signal })));
  const replies = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []));
  const [first] = replies;
  // Paid for is paid for: with most of the votes nothing is asked again for the sake of the others.
  if (first === undefined || replies.length * 2 < ends.length) throw failureOf(ends);
  const usage = sumOf(replies);
  const text = JSON.stringify(replies.map((reply) => reply.text));
  const { usage: _, ...rest } = first;
  return { ...rest, finish: 'stop', text, ...(usage && { usage }) };
}

/** The reply in words, and what it says of each class. */
export function readClass(
  reply: ModelReply,
  { classes, samples }: Classes,
): { readonly reply: ModelReply; readonly parsed?: ParsedAnswer } {
  if (reply.finish !== 'stop' && reply.finish !== 'length') return { reply };
  const scored =
    samples === undefined
      ? scoreClasses(classes, reply.logprobs ?? [])
      : voteClasses(classes, answersIn(reply.text));
  if (!scored.ok) {
    const problem = `${scored.problem} ${classifyReminder(classes)}`;
    return { reply: { ...reply, finish: 'stop' }, parsed: { ok: false, problem } };
  }
  const output: Json = { ...scored.classification };
  const said = { ...reply, text: scored.classification.best, finish: 'stop' as const };
  return { reply: said, parsed: { ok: true, output } };
}

function failureOf(ends: readonly PromiseSettledResult<unknown>[]): unknown {
  const failed = ends.find((end) => end.status === 'rejected');
  return failed?.reason ?? new Error('there are no samples');
}

function answersIn(text: string): readonly string[] {
  const answers = parseJson(text);
  return Array.isArray(answers) ? answers.filter((one) => typeof one === 'string') : [];
}

/** Undefined where a provider said nothing for one of them: then it is estimated. */
function sumOf(replies: readonly ModelReply[]): ModelUsage | undefined {
  return replies.reduce<ModelUsage | undefined>(
    (sum, { usage }) =>
      sum && usage
        ? {
            inputTokens: sum.inputTokens + usage.inputTokens,
            outputTokens: sum.outputTokens + usage.outputTokens,
            cachedTokens: sum.cachedTokens + usage.cachedTokens,
          }
        : undefined,
    { inputTokens: 0, outputTokens: 0, cachedTokens: 0 },
  );
}
