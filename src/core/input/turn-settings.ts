import type { AgentDefinition, ModelSettings } from '../definition/definition.js';
import { isTooDeep } from '../foreign-json.js';
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

/**
 * Options of clients and addresses, in lower case without separators: they belong to the entry of a
 * model. In an object of the provider, such a field may be data.
 */
const CLIENT_OPTIONS: ReadonlySet<string> = new Set(
  (
    'auth authtoken token key secret headers cookie baseurl baseuri base apibase apibaseurl apiurl endpoint host url ' +
    'azureendpoint organization organizationid project projectid extraquery defaultquery httpagent httpclient fetch ' +
    'fetchoptions maxretries awsaccesskeyid awsaccesskey adminapikey azureadtokenprovider dangerouslyallowbrowser'
  ).split(' '),
);
/** The ends of names that hold a credential everywhere. */
const CREDENTIAL_ENDS = (
  'apikey secretkey privatekey accesskey accesskeyid adminkey openaikey anthropickey azurekey authtoken ' +
  'accesstoken bearertoken sessiontoken adtoken authorization password secret credential credentials headers'
).split(' ');
const CREDENTIALS: ReadonlySet<string> = new Set(['cookie']);

/** Why settings may not have a credential or an option of a client. */
export const CREDENTIAL_PROBLEM =
  'expected no credential, address, or other option of a client, because settings are recorded and sent to the ' +
  'provider; give keys by environment variables (`apiKeyEnv`), and addresses and headers in `models`';

/** Returns why a model's setting may not have this name, in any case and with any separators, or null. */
export function credentialProblem(name: string): string | null {
  return CLIENT_OPTIONS.has(plain(name)) || isCredential(name) ? CREDENTIAL_PROBLEM : null;
}

/**
 * Returns the paths of the fields of settings whose names are those of credentials. The settings are
 * at most 200 levels deep. Native tools are checked on their own.
 */
export function credentialsIn(settings: object): readonly (readonly (string | number)[])[] {
  const found: (readonly (string | number)[])[] = [];
  const visit = (value: unknown, path: readonly (string | number)[]): void => {
    if (Array.isArray(value)) value.forEach((item: unknown, at) => visit(item, [...path, at]));
    else if (isObject(value)) {
      for (const [name, inner] of Object.entries(value)) {
        const place = [...path, name];
        if (place.length === 1 ? credentialProblem(name) !== null : isCredential(name)) {
          found.push(place);
        }
        if (place.length > 1 || name !== 'nativeTools') visit(inner, place);
      }
    }
  };
  visit(settings, []);
  return found;
}

function isCredential(name: string): boolean {
  const text = plain(name);
  return CREDENTIALS.has(text) || CREDENTIAL_ENDS.some((end) => text.endsWith(end));
}

function plain(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
}

/** Returns what is wrong with the settings of a message, regardless of its agent, or null. */
export function turnSettingsProblem(value: unknown): string | null {
  if (value === undefined) return null;
  if (!isObject(value)) {
    return `settings: expected an object, got ${show(value)}; give for example {"temperature": 0.2}`;
  }
  if (isTooDeep(value)) return 'settings: expected at most 200 levels; give flatter settings';
  const [credential] = credentialsIn(value);
  if (credential !== undefined) return `settings.${credential.join('.')}: ${CREDENTIAL_PROBLEM}`;
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
