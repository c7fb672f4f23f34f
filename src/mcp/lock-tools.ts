import { shellLine } from '../core/text/shell.js';
import { sha256Hex } from '../core/digest.js';
import type { ToolDefinition } from '../core/definition/tool-definition.js';
import { canonicalJson, isJsonObject, isObject, parseJson, type Json } from '../core/json.js';
import { redactJsonText } from '../secrets/redact-json.js';
import type { LockedTool, ToolForm, ToolLock } from '../storage/tool-lock.js';
import { usableTool, type ListedTool, type OddTool } from './listed-tool.js';
import type { McpServer } from './mcp-server.js';
import type { UsedTool } from './server-tools.js';

/** A tool whose form differs from the accepted one. */
export interface ChangedTool {
  readonly listed: ListedTool;
  readonly accepted: LockedTool;
  /** The accepted form for models; null if the lock does not have it, or no model can use it. */
  readonly before: ToolDefinition | null;
  /** The form that the server has now. */
  readonly now: ToolDefinition;
}

/** The tools of a server, compared with the lock. */
export interface ComparedTools {
  readonly same: readonly UsedTool[];
  /** Tools without an accepted form. */
  readonly unknown: readonly UsedTool[];
  readonly changed: readonly ChangedTool[];
}

/**
 * Returns the name of a server in the lock. Another command, folder, or address is another server,
 * whatever its name.
 */
export function lockName(server: McpServer): string {
  const { name } = server;
  const place =
    server.transport === 'stdio'
      ? { name, command: server.command, args: [...(server.args ?? [])], cwd: server.cwd ?? null }
      : { name, url: server.url };
  return `${name.toLowerCase()}-${sha256Hex(canonicalJson(place)).slice(0, 16)}`;
}

/** Compares the tools that an agent uses with the accepted forms. */
export async function compareTools(
  lock: ToolLock,
  server: McpServer,
  used: readonly UsedTool[],
): Promise<ComparedTools> {
  const entries = await lock.read(lockName(server));
  const accepted = new Map(entries.map((entry) => [entry.tool, entry]));
  const known = used.flatMap(({ listed, definition }) => {
    const entry = accepted.get(listed.name);
    return entry === undefined ? [] : [{ listed, now: definition, accepted: entry }];
  });
  const changed = known.filter(({ listed, accepted: entry }) => entry.hash !== listed.hash);
  return {
    same: used.filter(({ listed }) => accepted.get(listed.name)?.hash === listed.hash),
    unknown: used.filter(({ listed }) => !accepted.has(listed.name)),
    changed: await Promise.all(
      changed.map(async (each) => {
        const form = readForm(await lock.form(each.accepted.hash), each.accepted);
        const usable = form && usableTool(server, form);
        return { ...each, before: usable?.ok === true ? usable.definition : null };
      }),
    ),
  };
}

/** Records the present forms of tools as accepted. */
export async function acceptTools(
  lock: ToolLock,
  server: McpServer,
  tools: readonly ListedTool[],
): Promise<void> {
  await lock.write(lockName(server), tools.map(toForm), 'accepted');
}

/**
 * Returns the tools that a run may pin, and those that it must work without. A tool that has
 * changed is pinned in its accepted form, so its first call asks a person. New tools are recorded,
 * unless the server's `trust` demands that a person accepts them first.
 */
export async function lockedTools(
  lock: ToolLock,
  server: McpServer,
  used: readonly UsedTool[],
): Promise<{ readonly tools: readonly ToolDefinition[]; readonly notes: readonly OddTool[] }> {
  let compared = await compareTools(lock, server, used);
  const { unknown } = compared;
  if (unknown.length > 0 && server.trust === 'first_use') {
    await lock.write(
      lockName(server),
      unknown.map(({ listed }) => toForm(listed)),
      'first_use',
    );
    // Another worker may have recorded other forms at the same time.
    compared = await compareTools(lock, server, used);
  }
  const accept = (name: string): string => `accept it with: ${acceptCommand(server, name)}`;
  const unaccepted = compared.unknown.map(({ listed: { name } }) => {
    return { name, problem: `it has not been accepted yet; ${accept(name)}` };
  });
  const changes = compared.changed.map(({ listed: { name }, before }) => {
    const effect = before === null ? 'it cannot be used' : 'its calls wait for a person';
    return {
      name,
      problem: `it has changed since it was accepted, and ${effect}; ${accept(name)}`,
    };
  });
  return {
    tools: [
      ...compared.same.map(({ definition }) => definition),
      ...compared.changed.flatMap(({ before }) => before ?? []),
    ],
    notes: [...unaccepted, ...changes],
  };
}

/** Returns the command with which a person accepts the present form of a tool. */
export function acceptCommand({ name }: Pick<McpServer, 'name'>, tool: string): string {
  return shellLine({ program: 'perdure mcp accept', operands: [name, tool], options: [] });
}

/** The form is redacted, since a server may quote a secret that it was given; its hash is not. */
function toForm(listed: ListedTool): ToolForm {
  return { tool: listed.name, hash: listed.hash, form: redactJsonText(JSON.stringify(listed)) };
}

/** Reads a recorded form. Null if the lock does not have it or it is not the form of this tool. */
function readForm(text: string | null, { tool, hash }: LockedTool): ListedTool | null {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- JSON.parse gives JSON
  const value = parseJson(text ?? '') as Json | undefined;
  if (!isObject(value)) return null;
  const { name, description, schema, annotations, hash: recorded } = value;
  const isForm = name === tool && recorded === hash && typeof description === 'string';
  if (!isForm || !isJsonObject(schema) || !isObject(annotations)) return null;
  return { name, description, schema, annotations, hash };
}
