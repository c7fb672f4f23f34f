import type { ToolDefinition } from '../core/definition/tool-definition.js';
import {
  type Json,
  canonicalJson,
  isJsonObject,
  isObject,
  parseJson,
  sha256Hex,
} from '../core/text/json.js';
import { printable, shellLine } from '../core/text/text.js';
import { redactJsonText } from '../secrets/redact.js';
import type { LockedTool, ToolForm, ToolLock } from '../storage/tool-lock.js';
import { nearHint, nearestFirst } from '../validation/near-names.js';
import {
  type ListedTool,
  type McpListing,
  type OddTool,
  toolName,
  usableTool,
} from './listed-tool.js';
import type { McpServer } from './mcp-server.js';

/** Maximum tools that a message about them names. */
const MAX_NAMED = 20;

/** A tool that an agent uses, as its server lists it and as models see it. */
export interface UsedTool {
  readonly listed: ListedTool;
  readonly definition: ToolDefinition;
}

/** The tools of a server that an agent gets. */
export interface ServerTools {
  readonly used: readonly UsedTool[];
  /** Selected tools that no model can use, with the reasons; the agent works without them. */
  readonly odd: readonly OddTool[];
  /** Faults in the agent's own options. */
  readonly problems: readonly string[];
}

/** Returns whether an agent gets this tool of a server. */
export function isAllowedTool({ allowTools, denyTools }: McpServer, name: string): boolean {
  return (allowTools === null || allowTools.includes(name)) && !denyTools.includes(name);
}

/**
 * Selects the tools that an agent gets, and then checks each of them. A tool that cannot be used is
 * left out, and so is one whose name a tool before it has.
 */
export function serverTools(server: McpServer, listing: McpListing): ServerTools {
  const used: UsedTool[] = [];
  const odd = listing.odd.filter(({ name }) => isAllowedTool(server, name));
  for (const tool of listing.tools.filter(({ name }) => isAllowedTool(server, name))) {
    const { name } = tool;
    const usable = usableTool(server, tool);
    if (!usable.ok) odd.push({ name, problem: usable.problem });
    else if (used.some((other) => other.definition.name === usable.definition.name)) {
      odd.push({ name, problem: 'another tool has its name' });
    } else used.push({ listed: tool, definition: usable.definition });
  }
  return { used, odd, problems: unknownNames(server, listing) };
}

/** Describes tools and what is wrong with each, for people. `what` says what happens to them. */
export function describeOdd(odd: readonly OddTool[], what = 'left out'): string {
  const lines = odd.slice(0, MAX_NAMED).map(({ name, problem }) => {
    return `${printable(JSON.stringify(name.slice(0, 100)))}, because ${problem}`;
  });
  const more = odd.length > lines.length ? `; and ${odd.length - lines.length} more` : '';
  return `${what}: tool ${lines.join('; tool ')}${more}`;
}

/**
 * Returns the problems with names in the options that the server lacks: a misspelled one would have
 * no effect.
 */
function unknownNames(
  { name: server, allowTools, denyTools, effects }: McpServer,
  { tools, odd }: McpListing,
): string[] {
  const known = new Set([...tools, ...odd].map(({ name }) => name));
  const lists = { allowTools: allowTools ?? [], denyTools, effects: Object.keys(effects) };
  return Object.entries(lists).flatMap(([list, names]) =>
    names
      .filter((name) => !known.has(name))
      .map((name) => {
        // These lists have the server's own names, and rules have the prefixed ones.
        const own = name.startsWith(`${server}__`) ? name.slice(server.length + 2) : name;
        const existing = nearestFirst(own, [...known]).slice(0, 40);
        // A line that shows the error may cut it, so the nearest name comes first.
        return `${list} names tool "${name}"${nearHint(own, existing)}, which it does not have; available: ${existing.join(', ') || 'none'}`;
      }),
  );
}

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
interface ComparedTools {
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

/**
 * Returns the names, as models would see them, of all tools that a server lists or that the lock
 * has. An agent may get fewer of them: its options exclude some, others are not accepted or gone.
 */
export async function knownNames(
  lock: ToolLock,
  server: McpServer,
  { tools, odd }: McpListing,
): Promise<readonly string[]> {
  const locked = (await lock.read(lockName(server))).map(({ tool }) => tool);
  const names = new Set([...[...tools, ...odd].map(({ name }) => name), ...locked]);
  return [...names].map((name) => toolName(server.name, name));
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

/** Returns the command with which a person accepts the present form of a tool; null: of all of the server. */
export function acceptCommand({ name }: Pick<McpServer, 'name'>, tool: string | null): string {
  const operands = tool === null ? [name] : [name, tool];
  return shellLine({ program: 'perdure mcp accept', operands, options: [] });
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

const MAX_CHARACTERS = 2_500;
const MAX_LINES = 400;

/**
 * Describes for people how a tool differs from its pinned version: `-` marks removed lines, `+`
 * added ones. A text beyond `maxCharacters` is cut, with a note.
 */
export function describeToolChange(
  pinned: ToolDefinition,
  now: ToolDefinition,
  maxCharacters = MAX_CHARACTERS,
): string {
  const parts = [
    part('description', pinned.description, now.description),
    part('arguments', pretty(pinned.parameters), pretty(now.parameters)),
    part('effect', pinned.effect, now.effect),
  ].filter((text) => text !== '');
  const text =
    parts.length === 0
      ? 'only in parts that models do not see (hints, the schema of its results, hidden characters)'
      : parts.join('\n');
  if (text.length <= maxCharacters) return text;
  return `${text.slice(0, maxCharacters)}\n… ${text.length - maxCharacters} more characters`;
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 1);
}

function part(name: string, before: string, after: string): string {
  if (before === after) return '';
  return [`${name}:`, ...changedLines(before.split('\n'), after.split('\n'))].join('\n');
}

/** Returns the removed and added lines in order, by the longest common subsequence. */
function changedLines(before: readonly string[], after: readonly string[]): readonly string[] {
  if (before.length > MAX_LINES || after.length > MAX_LINES) {
    return [`- ${before.length} lines`, `+ ${after.length} other lines`];
  }
  const common = commonLengths(before, after);
  const lines: string[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const keep = i < before.length && j < after.length && before[i] === after[j];
    if (keep) {
      i += 1;
      j += 1;
    } else if (
      j >= after.length ||
      (i < before.length && at(common, i + 1, j) >= at(common, i, j + 1))
    ) {
      lines.push(`- ${before[i] ?? ''}`);
      i += 1;
    } else {
      lines.push(`+ ${after[j] ?? ''}`);
      j += 1;
    }
  }
  return lines;
}

/**
 * Returns, for each pair of positions, the length of the longest common subsequence of both rests.
 */
function commonLengths(before: readonly string[], after: readonly string[]): number[][] {
  const table = before.map(() => after.map(() => 0));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    const row = table[i] ?? [];
    for (let j = after.length - 1; j >= 0; j -= 1) {
      row[j] =
        before[i] === after[j]
          ? 1 + at(table, i + 1, j + 1)
          : Math.max(at(table, i + 1, j), at(table, i, j + 1));
    }
  }
  return table;
}

function at(table: readonly (readonly number[])[], i: number, j: number): number {
  return table[i]?.[j] ?? 0;
}
