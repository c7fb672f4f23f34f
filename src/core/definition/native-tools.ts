import { InputError } from '../errors.js';
import { isObject, type JsonObject } from '../json.js';

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
