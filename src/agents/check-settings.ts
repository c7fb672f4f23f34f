import type { z } from 'zod';
import { isTooDeep } from '../core/foreign-json.js';
import {
  CREDENTIAL_PROBLEM,
  credentialProblem,
  credentialsIn,
} from '../core/input/turn-settings.js';

/**
 * Settings that would have no effect, because perdure sets them itself, and what to use instead.
 */
export const FILLED: Readonly<Record<string, string>> = {
  model: 'use `model`',
  messages: 'use `instructions`, and the messages of the run',
  input: 'use `instructions`, and the messages of the run',
  instructions: 'use `instructions`',
  tools: 'use `tools`, or `settings.nativeTools` for tools of the provider',
  tool_choice: 'use `toolChoice`',
  response_format: 'use `output`',
  logprobs: 'use `output: classify({ … })`',
  top_logprobs: 'use `output: classify({ … })`',
  stream: 'replies are streamed wherever the model can; set `capabilities.streaming` of the model',
  stream_options: 'perdure always requests the usage',
  n: 'a step takes one reply; start several runs',
};

/** Options of other libraries, and the name of the same setting here. */
const FOREIGN: Readonly<Record<string, string>> = {
  maxTokens: 'maxOutputTokens',
  maxCompletionTokens: 'maxOutputTokens',
  topP: 'top_p',
  topK: 'top_k',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  stopSequences: 'stop',
  reasoningEffort: 'reasoning_effort',
  parallelToolCalls: 'parallel_tool_calls',
  serviceTier: 'service_tier',
  logitBias: 'logit_bias',
};
const ELSEWHERE: Readonly<Record<string, string>> = {
  modelName: 'use `model` of the agent',
  modelId: 'use `model` of the agent',
  model_name: 'use `model` of the agent',
  toolChoice: 'use `toolChoice` of the agent',
  responseFormat: 'use `output` of the agent',
  system: 'use `instructions` of the agent',
  prompt: 'use `instructions` of the agent, and the messages of the run',
  streaming: 'use `capabilities.streaming` of the model',
  providerOptions: "write the provider's own settings directly into `settings`",
  modelKwargs: "write the provider's own settings directly into `settings`",
  model_kwargs: "write the provider's own settings directly into `settings`",
  extra_body: "write the provider's own settings directly into `settings`",
  extraBody: "write the provider's own settings directly into `settings`",
  maxSteps: 'use `limits.turn.steps` of the agent',
  maxTurns: 'use `limits.turn.steps` of the agent',
  stopWhen: 'use `limits` of the agent',
  abortSignal: 'use `client.cancel`',
  callbacks: 'use the events of the run',
  timeout: 'use `timeout` of the entry in `models`',
};

/**
 * Adds an issue for each setting that perdure sets itself, that is an option of a client or of
 * another library, or that would take a credential into the history and to the provider. Names
 * count in any case, with or without `_`; a value is never shown.
 */
export function checkSettingNames(settings: object, context: z.RefinementCtx): void {
  const add = (path: (string | number)[], message: string): void =>
    context.addIssue({
      code: 'custom',
      path,
      message,
      // A credential is never shown.
      params: { secret: message === CREDENTIAL_PROBLEM },
    });
  if (isTooDeep(settings)) {
    add([], 'expected at most 200 levels');
    return;
  }
  for (const name of Object.keys(settings)) {
    const why = reasonAgainst(name);
    if (why !== null) add([name], why);
  }
  for (const path of credentialsIn(settings)) {
    // A setting itself has its reason already.
    if (path.length > 1) add([...path], CREDENTIAL_PROBLEM);
  }
}

function reasonAgainst(name: string): string | null {
  const own = (table: Readonly<Record<string, string>>): string | undefined =>
    Object.hasOwn(table, name) ? table[name] : undefined;
  const filled = own(FILLED);
  if (filled !== undefined) {
    return `expected no such setting, because perdure sets it; ${filled}`;
  }
  const credential = credentialProblem(name);
  if (credential !== null) return credential;
  const word = own(FOREIGN);
  if (word !== undefined) {
    return `expected the name that the setting has here or at the provider, got one of another library; write \`${word}\``;
  }
  const elsewhere = own(ELSEWHERE);
  return elsewhere === undefined
    ? null
    : `expected a setting of the provider, got an option of another library; ${elsewhere}`;
}
