import { show } from '../core/text/text.js';
import { isMistyped, likelyMeant } from './near-names.js';

/** Settings of a model as other libraries name them, and the name of the same setting here. */
export const SETTINGS_ELSEWHERE: Readonly<Record<string, string>> = {
  maxTokens: 'maxOutputTokens',
  maxCompletionTokens: 'maxOutputTokens',
  maxOutput: 'maxOutputTokens',
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

/** Settings of a model that are named here as elsewhere. */
const SETTINGS = ['temperature', 'maxOutputTokens', 'seed', 'stop'];

/** An option of this library, what to write there, and the options of other libraries with the same meaning. */
interface Equivalent {
  readonly option: string;
  readonly write?: string;
  readonly elsewhere: readonly string[];
}

/** What the AI SDK, the OpenAI Agents SDK, LangGraph, Mastra, and others name in another way. */
const EQUIVALENTS: readonly Equivalent[] = [
  { option: 'name', elsewhere: ['id', 'toolName', 'agentName'] },
  {
    option: 'instructions',
    elsewhere: ['system', 'prompt', 'systemPrompt', 'systemMessage', 'stateModifier'],
  },
  { option: 'model', elsewhere: ['llm', 'provider', 'modelName', 'modelId', 'languageModel'] },
  {
    option: 'settings',
    write: 'settings: { … }',
    elsewhere: ['modelSettings', 'providerOptions', 'defaultOptions', 'modelKwargs'],
  },
  {
    option: 'limits',
    write: 'limits: { steps: … }',
    elsewhere: ['maxSteps', 'maxTurns', 'maxIterations', 'recursionLimit', 'stopWhen', 'steps'],
  },
  { option: 'limits', write: 'limits: { wall: … }', elsewhere: ['timeout', 'totalTimeout'] },
  {
    option: 'output',
    elsewhere: [
      'outputType',
      'outputSchema',
      'responseFormat',
      'structuredOutput',
      'experimental_output',
    ],
  },
  { option: 'attempts', elsewhere: ['retries', 'maxRetries'] },
  { option: 'agents', elsewhere: ['handoffs', 'subagents', 'subAgents'] },
  { option: 'description', elsewhere: ['handoffDescription'] },
  { option: 'mcp', elsewhere: ['mcpServers'] },
  { option: 'rules', elsewhere: ['guardrails', 'inputGuardrails', 'permissions'] },
  { option: 'remember', write: 'retrieve and remember', elsewhere: ['memory'] },
  { option: 'input', elsewhere: ['inputSchema', 'parameters', 'schema', 'argsSchema'] },
  { option: 'execute', elsewhere: ['func', 'fn', 'handler', 'run', 'invoke', 'callback'] },
  { option: 'approval', elsewhere: ['needsApproval', 'requireApproval'] },
  { option: 'at', write: 'at: { node: … }', elsewhere: ['node', 'visit', 'fromNode'] },
  { option: 'address', elsewhere: ['url', 'host', 'endpoint', 'serverUrl'] },
  { option: 'config', write: 'config: defineConfig({ agents })', elsewhere: ['agents'] },
];

/** The shortest name that can be a word of another one, or a misspelling of its beginning. */
const MIN_WORD = 3;
const MIN_BEGINNING = 5;

/**
 * Says that an option does not exist. Names the option that it may be a misspelling of, or that has its meaning in
 * another library; without one, all options.
 */
export function unknownOption(name: string, known: readonly string[]): string {
  const word = name.replaceAll(/(?<=[a-z])_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const meant = equivalent(word, known) ?? misspelled(word, known) ?? likelyOption(name, known);
  const hint =
    meant === undefined ? `the options are ${known.join(', ')}` : `did you mean ${meant}?`;
  return `${show(name)} is not an option; ${hint}`;
}

function equivalent(name: string, known: readonly string[]): string | undefined {
  const setting = Object.hasOwn(SETTINGS_ELSEWHERE, name) ? SETTINGS_ELSEWHERE[name] : undefined;
  const own = setting ?? (Object.values(SETTINGS_ELSEWHERE).includes(name) ? name : undefined);
  if (known.includes('settings') && (own !== undefined || SETTINGS.includes(name))) {
    return `settings: { ${own ?? name}: … }`;
  }
  const found = EQUIVALENTS.find(
    ({ option, elsewhere }) => known.includes(option) && elsewhere.includes(name),
  );
  return found && (found.write ?? found.option);
}

/** Returns the equivalent of a mistyped name of another library, such as `sytem`. */
function misspelled(name: string, known: readonly string[]): string | undefined {
  const possible = EQUIVALENTS.filter(({ option }) => known.includes(option));
  const meant = [...possible.flatMap(({ elsewhere }) => elsewhere), ...SETTINGS].find(
    (one) => one.length >= MIN_BEGINNING && isMistyped(name, one),
  );
  return meant === undefined || known.includes(meant) ? undefined : equivalent(meant, known);
}

/** Returns the option that is meant; also the only one that begins in nearly the same way, or has the name as a word. */
function likelyOption(name: string, known: readonly string[]): string | undefined {
  const near = likelyMeant(name, known);
  if (near !== undefined || name.length < MIN_WORD) return near;
  const options = known.map((option) => ({ option, words: option.split(/(?=[A-Z])|_/) }));
  const isMeant = [
    (words: readonly string[]) =>
      name.length >= MIN_BEGINNING && likelyMeant(name, beginningsOf(words)) !== undefined,
    (words: readonly string[]) => words.some((word) => word.toLowerCase() === name.toLowerCase()),
  ];
  for (const isFitting of isMeant) {
    const fitting = options.filter(({ words }) => words.length > 1 && isFitting(words));
    if (fitting.length === 1) return fitting[0]?.option;
  }
  return undefined;
}

/** Returns the beginnings of a name that end with one of its words: `max` and `maxCached` of `maxCachedWorkflows`. */
function beginningsOf(words: readonly string[]): string[] {
  return words.slice(1).map((_, index) => words.slice(0, index + 1).join(''));
}
