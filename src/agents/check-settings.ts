import type { z } from 'zod';
import { isObject } from '../core/json.js';
import { isTooDeep } from '../core/foreign-json.js';

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

/** Options of clients, in lower case without `_` and `-`: they belong to the entry of a model. */
const CLIENT_OPTIONS: ReadonlySet<string> = new Set(
  (
    'apikey authorization auth authtoken bearertoken accesstoken token secret secretkey clientsecret password ' +
    'credential credentials headers extraheaders defaultheaders httpheaders customheaders cookie xapikey ' +
    'proxyauthorization baseurl baseuri apibase apiurl endpoint azureendpoint organization organizationid project ' +
    'projectid extraquery defaultquery httpagent httpclient fetch fetchoptions maxretries awsaccesskeyid ' +
    'awssecretaccesskey awssessiontoken accesskey accesskeyid privatekey adminapikey openaiapikey ' +
    'anthropicapikey azureopenaiapikey azureadtoken azureadtokenprovider dangerouslyallowbrowser'
  ).split(' '),
);
/** In an object of the provider, such a field may be data; these are credentials everywhere. */
const CREDENTIAL =
  /^(?:x?api|admin|openai|anthropic|azure\w*|secret|private|access)key$|(?:auth|access|bearer|session)token$|^(?:proxy)?authorization$|password$|secret$|^credentials?$|headers$|^cookie$/;

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
      params: { secret: message === credentialProblem() },
    });
  if (isTooDeep(settings)) {
    add([], 'expected at most 200 levels');
    return;
  }
  for (const name of Object.keys(settings)) {
    const why = reasonAgainst(name);
    if (why !== null) add([name], why);
  }
  visit(settings, [], (name, path) => {
    if (path.length > 1 && path[0] !== 'nativeTools' && CREDENTIAL.test(plain(name))) {
      add(path, credentialProblem());
    }
  });
}

function reasonAgainst(name: string): string | null {
  const own = (table: Readonly<Record<string, string>>): string | undefined =>
    Object.hasOwn(table, name) ? table[name] : undefined;
  const filled = own(FILLED);
  if (filled !== undefined) {
    return `expected no such setting, because perdure sets it; ${filled}`;
  }
  if (CLIENT_OPTIONS.has(plain(name)) || CREDENTIAL.test(plain(name))) return credentialProblem();
  const word = own(FOREIGN);
  if (word !== undefined) {
    return `expected the name that the setting has here or at the provider, got one of another library; write \`${word}\``;
  }
  const elsewhere = own(ELSEWHERE);
  return elsewhere === undefined
    ? null
    : `expected a setting of the provider, got an option of another library; ${elsewhere}`;
}

function credentialProblem(): string {
  return (
    'expected no option of a client here, because settings are part of the history and of each request; ' +
    'give keys by environment variables (`apiKeyEnv`), and addresses and headers in `models`'
  );
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[_\s-]/g, '');
}

/** Visits the names of all fields, and their paths. The values are at most 200 levels deep. */
function visit(
  value: unknown,
  path: readonly (string | number)[],
  see: (name: string, path: (string | number)[]) => void,
): void {
  if (Array.isArray(value)) {
    value.forEach((item: unknown, at) => visit(item, [...path, at], see));
  } else if (isObject(value)) {
    for (const [name, inner] of Object.entries(value)) {
      const place = [...path, name];
      see(name, place);
      visit(inner, place, see);
    }
  }
}
