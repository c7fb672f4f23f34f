import { z } from 'zod';
import { addedTools } from '../agents/client-tools.js';
import type { ClientTool } from '../core/definition/tool-definition.js';
import { InputError } from '../core/errors.js';
import { type JsonObject, canonicalJson, isJsonObject, isObject } from '../core/text/json.js';
import { show } from '../core/text/text.js';
import type { Place } from './access.js';
import { viewOf } from './chats.js';
import type { ClientTools } from './input-fields.js';

/** The fields of a request that say which tools the client has. */
export const TOOL_FIELDS = {
  tools: z.array(z.unknown(), 'expected a list of tools').nullish(),
  tool_choice: z
    .literal('auto', {
      error: ({ input }) =>
        `expected "auto", got ${show(input)}; the agent decides when to call a tool: omit it`,
    })
    .nullish(),
};

/** Returns the tools of a request, in either form of OpenAI's. Throws an `InputError` that names the first fault. */
export function clientToolsOf(tools: readonly unknown[] | null | undefined): ClientTools {
  return (tools ?? []).map((tool, at) => {
    const { type, function: nested, ...flat } = isObject(tool) ? tool : {};
    if (type !== 'function') {
      throw new InputError(
        `tools.${at}.type: expected "function", a tool that the client executes, got ${show(type)}; other tools are those of the agent: remove it`,
      );
    }
    return toTool(isObject(nested) ? nested : flat);
  });
}

function toTool({ name, description, parameters }: Record<string, unknown>): ClientTools[number] {
  const isAbsent = isObject(parameters) && Object.keys(parameters).length === 0;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `addedTools` checks each field
  return {
    name,
    ...(description != null && { description }),
    ...(parameters != null && !isAbsent && { parameters }),
  } as ClientTools[number];
}

/**
 * Checks that an agent may get these tools of a client. Throws an `InputError`. The tools of an agent
 * that the server does not know are checked by the worker.
 */
export function requireTools(
  { agents }: Pick<Place, 'agents'>,
  model: string,
  given: readonly ClientTool[],
): void {
  const known = agents.find(({ name }) => name === model);
  const { tools, graph } = known ?? {};
  addedTools({ name: model, tools: tools?.tools ?? [], ...(graph && { graph }) }, given, 'tools');
}

/** Rejects with an `InputError` if a request has tools with which its run has not begun. */
export async function requireSameTools(
  place: Place,
  run: string,
  given: readonly ClientTool[],
): Promise<void> {
  if (given.length === 0) return;
  const { input, state } = await viewOf(place, run);
  const begun = input?.clientTools ?? [];
  const own = state?.config.definition.tools.filter(({ kind }) => kind === 'client') ?? [];
  const other = given.findIndex((tool) => {
    if (own.some(({ name, caller }) => name === tool.name && !caller)) return false;
    return !begun.some((one) => canonicalJson(toJson(one)) === canonicalJson(toJson(tool)));
  });
  if (other === -1) return;
  const names = begun.map(({ name }) => name).join(', ') || 'none';
  throw new InputError(
    `tools.${other}: expected the tools with which the conversation has begun (${names}), got ${show(given[other]?.name)} as a new or a changed one; begin another conversation for it`,
  );
}

function toJson(tool: ClientTool): JsonObject {
  const json: unknown = JSON.parse(JSON.stringify(tool));
  return isJsonObject(json) ? json : {};
}

/** Whether a response of this agent may end with calls for the client; unknown agents may. */
export function mayCallClient(
  { agents }: Pick<Place, 'agents'>,
  model: string,
  given: readonly ClientTool[],
): boolean {
  if (given.length > 0) return true;
  const { tools } = agents.find(({ name }) => name === model) ?? {};
  return tools === undefined || tools.tools.some(({ kind }) => kind === 'client');
}
