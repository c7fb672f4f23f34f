import type { AgentDefinition, ModelSettings } from '../definition/definition.js';
import { InputError } from '../errors.js';
import { type JsonObject, isObject, isTooDeep } from '../text/json.js';
import { jsonText, show } from '../text/text.js';

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

/** Types of Responses API tools that the provider executes; no part of them runs on a worker. */
const TYPES = /^(web_search(_preview)?(_\d{4}_\d{2}_\d{2})?|file_search|code_interpreter|mcp)$/;

/**
 * Fields of a hosted MCP server that hold keys, which histories would record with the definition.
 */
const SECRETS = ['authorization', 'headers'];

function checkTool(tool: unknown, path: string): JsonObject {
  const type = isObject(tool) ? tool['type'] : undefined;
  if (isObject(tool) && isComputer(tool)) return checkComputer(tool, path);
  if (!isObject(tool) || typeof type !== 'string' || !TYPES.test(type)) {
    throw new InputError(
      `${path}: expected a tool that the provider executes, got ${JSON.stringify(tool)}; give { type: 'web_search' }, ` +
        'or a type of mcp, file_search, code_interpreter, computer, or computer_use_preview',
    );
  }
  const secret = SECRETS.find((field) => field in tool);
  if (secret !== undefined) {
    throw new InputError(
      `${path}.${secret}: expected no key, because every history would record it; ` +
        "name the worker's environment variable that holds the token: authorizationEnv: 'NAME'",
    );
  }
  const { require_approval: approval } = tool;
  if (type === 'mcp' && approval !== undefined && approval !== 'never') {
    throw new InputError(
      `${path}.require_approval: expected 'never', got ${JSON.stringify(approval)}: the provider makes these ` +
        'calls, and no person could approve them; give allowed_tools, or let perdure call the server',
    );
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- settings are JSON
  return tool as JsonObject;
}

const COMPUTERS = ['computer_use_preview', 'computer'];
const SIZES = ['display_width', 'display_height'];

/** The default screen for models that require its size in advance. */
const DISPLAY = { display_width: 1280, display_height: 800, environment: 'browser' };

function isComputer(tool: Readonly<Record<string, unknown>>): boolean {
  return typeof tool['type'] === 'string' && COMPUTERS.includes(tool['type']);
}

/**
 * Checks a computer tool. The provider executes nothing: the model's actions become calls of the
 * handler.
 */
function checkComputer(tool: Readonly<Record<string, unknown>>, path: string): JsonObject {
  const { type, handler } = tool;
  if (typeof handler !== 'string' || handler === '') {
    throw new InputError(
      `${path}.handler: expected the name of the agent's tool that executes the actions, got ${JSON.stringify(handler)}: ` +
        `{ type: '${String(type)}', handler: 'screen' }`,
    );
  }
  const wrong = SIZES.find((size) => tool[size] !== undefined && !isSize(tool[size]));
  if (wrong !== undefined) {
    throw new InputError(
      `${path}.${wrong}: expected 1–10000 pixels, got ${JSON.stringify(tool[wrong])}; default: ${DISPLAY.display_width} × ${DISPLAY.display_height}`,
    );
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- settings are JSON
  const given = tool as JsonObject;
  return type === 'computer' ? given : { ...DISPLAY, ...given };
}

function isSize(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 10_000;
}

/**
 * Returns the tool that executes the model's actions on a screen; null if the settings name none.
 */
export function computerHandler(settings: Readonly<Record<string, unknown>>): string | null {
  const { nativeTools: tools } = settings;
  if (!Array.isArray(tools)) return null;
  const computer = tools.filter(isObject).find(isComputer);
  return typeof computer?.['handler'] === 'string' ? computer['handler'] : null;
}

/** Returns the checked setting `nativeTools`. Throws an `InputError` that names the value and the fix. */
export function nativeToolsOf(value: unknown, path: string): readonly JsonObject[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    throw new InputError(
      `${path}: expected a list such as [{ type: 'web_search' }], got ${JSON.stringify(value)}`,
    );
  }
  if (value.filter(isObject).filter(isComputer).length > 1) {
    throw new InputError(`${path}: expected at most one computer, because an agent has one screen`);
  }
  return value.map((tool: unknown, index) => checkTool(tool, `${path}[${index}]`));
}
