import { isObject, type JsonObject } from '../json.js';

/** Tools of the Responses API that the provider executes by itself; nothing of them runs here. */
const TYPES = /^(web_search(_preview)?(_\d{4}_\d{2}_\d{2})?|file_search|code_interpreter|mcp)$/;

/** Fields of a hosted MCP server that hold keys; what agents are made of is kept in histories. */
const SECRETS = ['authorization', 'headers'];

function checked(tool: unknown, path: string): JsonObject {
  const type = isObject(tool) ? tool['type'] : undefined;
  if (isObject(tool) && isComputer(tool)) return checkedComputer(tool, path);
  if (!isObject(tool) || typeof type !== 'string' || !TYPES.test(type)) {
    throw new Error(
      `${path}: ${JSON.stringify(tool)} is no tool that a provider executes; give { type: 'web_search' }, ` +
        "or a type of mcp, file_search, code_interpreter, computer or computer_use_preview. What has to run here is one of the agent's tools",
    );
  }
  const secret = SECRETS.find((field) => field in tool);
  if (secret !== undefined) {
    throw new Error(
      `${path}.${secret}: keys would be kept in every history; name the worker's environment variable ` +
        "that holds the token: authorizationEnv: 'NAME'",
    );
  }
  const { require_approval: approval } = tool;
  if (type === 'mcp' && approval !== undefined && approval !== 'never') {
    throw new Error(
      `${path}.require_approval: ${JSON.stringify(approval)}: the provider makes these calls, and nobody ` +
        "could answer it; give 'never' and allowed_tools, or let perdure call the server",
    );
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- settings are JSON
  return tool as JsonObject;
}

const COMPUTERS = ['computer_use_preview', 'computer'];
const SIZES = ['display_width', 'display_height'];

/** Told to a model that has to know its screen beforehand. */
const DISPLAY = { display_width: 1280, display_height: 800, environment: 'browser' };

function isComputer(tool: Readonly<Record<string, unknown>>): boolean {
  return typeof tool['type'] === 'string' && COMPUTERS.includes(tool['type']);
}

/** Nothing of it is executed by the provider: its actions are calls of the handler. */
function checkedComputer(tool: Readonly<Record<string, unknown>>, path: string): JsonObject {
  const { type, handler } = tool;
  if (typeof handler !== 'string' || handler === '') {
    throw new Error(
      `${path}.handler: ${JSON.stringify(handler)}; name the agent's tool that executes the actions: ` +
        `{ type: '${String(type)}', handler: 'screen' }`,
    );
  }
  const wrong = SIZES.find((size) => tool[size] !== undefined && !isSize(tool[size]));
  if (wrong !== undefined) {
    throw new Error(
      `${path}.${wrong}: ${JSON.stringify(tool[wrong])}; give pixels, 1 to 10000, default ${DISPLAY.display_width} × ${DISPLAY.display_height}`,
    );
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- settings are JSON
  const given = tool as JsonObject;
  return type === 'computer' ? given : { ...DISPLAY, ...given };
}

function isSize(value: unknown): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 10_000;
}

/** The tool that executes what the model does on a screen; null where the settings have no such thing. */
export function computerHandler(settings: Readonly<Record<string, unknown>>): string | null {
  const { nativeTools: tools } = settings;
  if (!Array.isArray(tools)) return null;
  const computer = tools.filter(isObject).find(isComputer);
  return typeof computer?.['handler'] === 'string' ? computer['handler'] : null;
}

/** The setting `nativeTools`. Throws with the value at fault and the cure. */
export function nativeToolsOf(value: unknown, path: string): readonly JsonObject[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    throw new Error(
      `${path}: ${JSON.stringify(value)}; give a list such as [{ type: 'web_search' }]`,
    );
  }
  if (value.filter(isObject).filter(isComputer).length > 1) {
    throw new Error(`${path}: more than one computer; an agent has one screen`);
  }
  return value.map((tool: unknown, index) => checked(tool, `${path}[${index}]`));
}
