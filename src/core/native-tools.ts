import { isObject, type JsonObject } from './json.js';

/** Tools of the Responses API that the provider executes by itself; nothing of them runs here. */
const TYPES = /^(web_search(_preview)?(_\d{4}_\d{2}_\d{2})?|file_search|code_interpreter|mcp)$/;

/** Fields of a hosted MCP server that hold keys; what agents are made of is kept in histories. */
const SECRETS = ['authorization', 'headers'];

function checked(tool: unknown, path: string): JsonObject {
  const type = isObject(tool) ? tool['type'] : undefined;
  if (!isObject(tool) || typeof type !== 'string' || !TYPES.test(type)) {
    throw new Error(
      `${path}: ${JSON.stringify(tool)} is no tool that a provider executes; give { type: 'web_search' }, ` +
        "or a type of mcp, file_search or code_interpreter. What has to run here is one of the agent's tools",
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

/** The setting `nativeTools`. Throws with the value at fault and the cure. */
export function nativeToolsOf(value: unknown, path: string): readonly JsonObject[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) {
    throw new Error(
      `${path}: ${JSON.stringify(value)}; give a list such as [{ type: 'web_search' }]`,
    );
  }
  return value.map((tool: unknown, index) => checked(tool, `${path}[${index}]`));
}
