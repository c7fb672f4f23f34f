import { z } from 'zod';
import type { Effect } from '../core/definition/tool-definition.js';
import type { JsonObject } from '../core/text/json.js';
import { matchesGlob } from '../core/definition/predicate.js';
import type { Rule } from '../core/definition/rules.js';
import { show } from '../core/text/text.js';
import { predicateMisfit } from '../core/definition/predicate-misfit.js';
import { isRecord } from '../core/text/json.js';
import { likelyMeant } from './near-names.js';

/** What is known about a tool that a rule may name. `Tool` and `ToolDefinition` are assignable. */
interface NamedTool {
  readonly name: string;
  readonly effect: Effect;
  /** JSON schema of the arguments, as the model writes them. */
  readonly parameters: JsonObject;
  /** The schema that parses the arguments; rules are also tested on what it returns. */
  readonly input?: z.ZodType;
}

/** The tools that rules can be about. */
export interface KnownTools {
  readonly tools: readonly NamedTool[];
  /** Names of MCP servers whose tools are not known yet; they are named `<server>__<tool>`. */
  readonly unlisted?: readonly string[];
  /** Names of all MCP servers of these agents, also of those that have listed their tools. */
  readonly servers?: readonly string[];
  /** Names of tools that exist, or did, and that no agent gets: rules about them apply to no call. */
  readonly withheld?: readonly string[];
}

/** What is wrong with the names in rules, as texts `field: expected X, got Y; fix`. */
export interface RuleFindings {
  /** Rules that can never apply to a call. */
  readonly errors: readonly string[];
  /** Globs that match nothing yet. */
  readonly warnings: readonly string[];
  /** Names that cannot be checked yet, because their MCP servers have not listed their tools. */
  readonly unchecked: readonly string[];
}

/** Maximum names that an error lists. */
const NAMED = 20;

/** Maximum MCP servers that an error shows in examples. */
const EXAMPLES = 3;

/** The tool that workers add to each agent that has tools. */
const READ_RESULT: NamedTool = { name: 'read_result', effect: 'read', parameters: {} };

/**
 * Compares the names, effects, and paths in valid rules with the tools that exist. A rule that names
 * what does not exist would be silent, and its call would be executed. `path`: the field that holds the
 * rules.
 */
export function ruleFindings(
  rules: readonly Rule[],
  { tools, unlisted = [], servers = unlisted, withheld = [] }: KnownTools,
  path = 'rules',
): RuleFindings {
  const known = [...tools, READ_RESULT];
  const errors: string[] = [];
  const warnings: string[] = [];
  const unchecked: string[] = [];
  for (const [index, rule] of rules.entries()) {
    const at = `${path}[${index}]`;
    const found = known.filter(({ name }) => matchesGlob(name, rule.tool));
    const isGlob = /[*?]/.test(rule.tool);
    if (found.length === 0) {
      if (withheld.includes(rule.tool)) continue;
      const server = unlisted.find((name) => rule.tool.startsWith(`${name}__`));
      if (server !== undefined) unchecked.push(uncheckedTool(at, rule.tool, server));
      else if (!isGlob) errors.push(unknownTool(at, rule.tool, { tools, servers }));
      else if (servers.length > 0 && !servers.some((name) => matchesToolOf(name, rule.tool))) {
        errors.push(unprefixedGlob(at, rule.tool, servers));
      } else if (unlisted.length === 0) warnings.push(emptyGlob(at, rule.tool));
      continue;
    }
    const problems = found.map((tool) => misfit(rule, tool, at));
    const [first = null] = problems;
    if (first === null || problems.includes(null)) continue;
    if (!isGlob) errors.push(first);
    else if (unlisted.length === 0) warnings.push(first);
  }
  return { errors, warnings, unchecked };
}

function unknownTool(
  at: string,
  tool: string,
  { tools, servers = [] }: Pick<KnownTools, 'tools' | 'servers'>,
): string {
  const names = tools.map(({ name }) => name);
  const prefixed = servers.map((server) => `${server}__${tool}`);
  const meant = prefixed.find((name) => names.includes(name)) ?? likelyMeant(tool, names);
  const known =
    names.length === 0 ? 'there are no tools' : `the tools are ${names.slice(0, NAMED).join(', ')}`;
  const hint = meant === undefined ? known : `did you mean ${show(meant)}`;
  const fix =
    servers.length > 0
      ? `${meant === undefined ? mcpToolNames(tool, servers) : 'MCP tools are named <server>__<tool>'}; correct it`
      : `correct it, or write a glob such as ${show(`${tool}*`)} for tools to come`;
  return `${at}.tool: expected the name of a tool that exists, got ${show(tool)} (${hint}); ${fix}`;
}

/** Such a glob matches no call, and an approval that it asks for would be off. */
function unprefixedGlob(at: string, tool: string, servers: readonly string[]): string {
  return (
    `${at}.tool: expected a glob that matches a tool, got ${show(tool)}, which can match no tool of ` +
    `an MCP server either; ${mcpToolNames(tool, servers)}; correct it`
  );
}

/** Says how MCP tools are named, with examples that a person can copy. */
export function mcpToolNames(tool: string, servers: readonly string[]): string {
  const own = tool.slice(tool.lastIndexOf('__') + 1).replace(/^_+/, '') || '*';
  const examples = servers.slice(0, EXAMPLES).map((server) => show(`${server}__${own}`));
  return `MCP tools are named <server>__<tool>, such as ${examples.join(' or ')}`;
}

/** Returns whether a glob can match a tool of an MCP server, whatever tools the server has. */
function matchesToolOf(server: string, glob: string): boolean {
  const prefix = `${server}__`;
  // The places in the glob that a part of the prefix can reach.
  let places = skipStars(glob, [0]);
  for (const character of prefix) {
    const next = places.flatMap((place) => {
      if (glob[place] === '*') return [place];
      return glob[place] === '?' || glob[place] === character ? [place + 1] : [];
    });
    places = skipStars(glob, next);
  }
  return places.some((place) => place < glob.length);
}

/** Adds the places after each star, which may match nothing. */
function skipStars(glob: string, places: readonly number[]): readonly number[] {
  const all = new Set(places);
  for (const place of all) if (glob[place] === '*') all.add(place + 1);
  return [...all];
}

function emptyGlob(at: string, tool: string): string {
  return `${at}.tool: expected a glob that matches a tool, got ${show(tool)}; no tool has such a name now, so the rule applies to no call`;
}

function uncheckedTool(at: string, tool: string, server: string): string {
  return `${at}.tool: ${show(tool)} was not checked, because the tools of MCP server ${show(server)} are not known yet`;
}

/** Returns why a rule never applies to a tool; null if it may. */
function misfit({ effect, where }: Rule, tool: NamedTool, at: string): string | null {
  if (effect !== undefined && effect !== tool.effect) {
    return `${at}.effect: expected "${tool.effect}", the effect of tool ${show(tool.name)}, got "${effect}"; correct or remove it`;
  }
  if (where === undefined) return null;
  const tested = { name: tool.name, schemas: testedSchemas(tool), meantBy: likelyMeant };
  return predicateMisfit(where, tested, `${at}.where`);
}

/** Returns the schemas of a tool's arguments, as the model writes them and as the tool gets them. */
export function testedSchemas({
  parameters,
  input,
}: Pick<NamedTool, 'parameters' | 'input'>): readonly JsonObject[] {
  return [parameters, ...parsedSchema(input)];
}

/** Returns the JSON schema of what `input` returns, which differs in transforms; it may be absent. */
function parsedSchema(input: z.ZodType | undefined): readonly JsonObject[] {
  if (input === undefined) return [];
  try {
    const schema: unknown = JSON.parse(
      JSON.stringify(z.toJSONSchema(input, { io: 'output', unrepresentable: 'any' })),
    );
    return isRecord(schema) ? [schema] : [{}];
  } catch {
    return [{}];
  }
}
