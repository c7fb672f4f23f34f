import type { AgentDefinition, ModelSettings } from '../definition/definition.js';
import { isObject, type JsonObject } from '../json.js';
import { jsonText, show } from '../text/format-value.js';

/**
 * The settings that a message may give unless its agent allows others: those that change how the
 * model writes, and those by which the provider files the request.
 */
const DEFAULT_ALLOWED: readonly string[] = [
  'frequency_penalty',
  'logit_bias',
  'maxOutputTokens',
  'metadata',
  'presence_penalty',
  'prompt_cache_key',
  'reasoning',
  'reasoning_effort',
  'safety_identifier',
  'seed',
  'service_tier',
  'stop',
  'stop_sequences',
  'temperature',
  'thinking',
  'top_k',
  'top_p',
  'user',
  'verbosity',
];

/** Maximum characters. The settings are sent with each model call of their turn. */
const MAX_CHARACTERS = 4_000;

/** Names that hold a credential, or that lead a request elsewhere, without their separators. */
const CREDENTIAL =
  /^(?:.*apikey|.*(?:secret|password|credentials?|accesstoken|authtoken|bearertoken)|auth|authorization|key|token|(?:extra|default)?headers|extraquery|defaultquery|(?:api)?base(?:url)?|baseurl|endpoint|host|url|organization|project)$/;

/**
 * Returns why a model's setting may not have this name, or null. Keys belong to the worker's
 * environment, and addresses to the configuration: settings are recorded and sent to the provider.
 */
export function credentialProblem(name: string): string | null {
  const plain = name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  if (!CREDENTIAL.test(plain)) return null;
  return `expected no credential or address, because settings are recorded; set \`apiKeyEnv\` or \`baseUrl\` of the model in the config`;
}

/** Returns what is wrong with the settings of a message, regardless of its agent, or null. */
export function turnSettingsProblem(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `settings: expected an object, got ${show(value)}; give for example {"temperature": 0.2}`;
  }
  for (const name of Object.keys(value)) {
    const problem = credentialProblem(name);
    if (problem !== null) return `settings.${name}: ${problem}`;
  }
  const text = jsonText(value);
  if (text === undefined) return 'settings: expected JSON; give what JSON.stringify can serialize';
  if (text.length <= MAX_CHARACTERS) return null;
  return `settings: expected at most ${MAX_CHARACTERS} characters, got ${text.length}; give large values to the agent`;
}

/** Returns why the agent does not allow these settings, or null. */
export function settingsMisfit(
  { name: agent, callSettings = DEFAULT_ALLOWED, settings: own }: AgentDefinition,
  given: JsonObject | undefined,
): string | null {
  if (given === undefined) return null;
  const refused = Object.keys(given).find((name) => !callSettings.includes(name));
  if (refused !== undefined) {
    const allowed = callSettings.length === 0 ? 'none' : callSettings.join(', ');
    return `settings.${refused}: agent ${show(agent)} allows ${allowed}; remove it, or add it to \`callSettings\` of the agent`;
  }
  const { maxOutputTokens: wanted } = given;
  if (wanted === undefined) return null;
  const limit = own.maxOutputTokens ?? Number.MAX_SAFE_INTEGER;
  const fits = Number.isSafeInteger(wanted) && Number(wanted) >= 1 && Number(wanted) <= limit;
  if (fits) return null;
  const most = own.maxOutputTokens === undefined ? '' : ` to ${limit}, the agent's own`;
  return `settings.maxOutputTokens: expected a whole number from 1${most}, got ${show(wanted)}`;
}

/** Returns the settings of a turn from those of its messages, oldest first; undefined if none. */
export function joinSettings(all: readonly (JsonObject | undefined)[]): ModelSettings | undefined {
  const given = all.filter((one) => one !== undefined);
  return given.length === 0 ? undefined : Object.assign({}, ...given);
}
