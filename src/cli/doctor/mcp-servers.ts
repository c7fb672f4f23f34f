import { withCalled } from '../../agents/agent-definition.js';
import type { Config } from '../../config.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { printable } from '../../core/text/text.js';
import { knownFault } from '../../mcp/connection.js';
import {
  acceptCommand,
  compareTools,
  describeOdd,
  knownNames,
  serverTools,
} from '../../mcp/lock-tools.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { type McpSessions, createSessions } from '../../mcp/session.js';
import type { ToolLock } from '../../storage/tool-lock.js';
import { noiseFault } from '../../mcp/transport.js';
import { ruleFindings } from '../../validation/rule-names.js';
import { formatCount } from '../format/format.js';
import type { Finding } from './finding.js';

/** Time for a server to start. A slower server may still work for a run. */
const START_WITHIN_MS = 8_000;
/** Time to start and to list its tools, or to end a program that does not answer. */
const LIST_WITHIN_MS = 16_000;

/** The servers whose tools could be listed. */
type Listed = Map<McpServer, ServerNames>;

/** What servers write to their standard output beside the protocol, by their names. */
type Noise = Map<string, string>;

interface Checked {
  readonly sessions: McpSessions;
  readonly lock: () => ToolLock;
  readonly found: Listed;
  readonly noise: Noise;
}

interface ServerNames {
  /** The tools that agents get. */
  readonly tools: readonly ToolDefinition[];
  /** The names of all tools that the server has or had. */
  readonly known: readonly string[];
}

/**
 * Checks the MCP servers of each agent by listing their tools, as a worker with this environment
 * would, and then what the rules name.
 */
export async function mcpFindings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  lock: () => ToolLock,
): Promise<readonly Finding[]> {
  const noise: Noise = new Map();
  const sessions = createSessions(env, ({ name }, text) => noise.set(name, text));
  const found: Listed = new Map();
  try {
    const findings = await Promise.all(
      withCalled(config.agents).flatMap((agent) =>
        agent.mcp.map((server) =>
          finding({ sessions, lock, found, noise }, { agent: agent.name, server }),
        ),
      ),
    );
    return [...findings, ...ruleFindingsOf(config, found)];
  } finally {
    await sessions.close();
  }
}

async function finding(
  { sessions, lock, found, noise }: Checked,
  { agent, server }: { agent: string; server: McpServer },
): Promise<Finding> {
  const { name: serverName, startup, transport } = server;
  const name = `mcp ${serverName}`;
  const level = startup === 'strict' ? 'problem' : 'note';
  const data = { agent, server: serverName, transport };
  try {
    const listed = await sessions
      .of({ ...server, connectMs: Math.min(server.connectMs, START_WITHIN_MS) })
      .listing({ maxAgeMs: LIST_WITHIN_MS, waitMs: LIST_WITHIN_MS });
    const { used, odd, problems } = serverTools(server, listed);
    found.set(server, {
      tools: used.map((tool) => tool.definition),
      known: await knownNames(lock(), server, listed),
    });
    const { unknown, changed } = await compareTools(lock(), server, used);
    const count = listed.tools.length + listed.odd.length;
    const unaccepted = server.trust === 'accepted' ? unknown.map((tool) => tool.listed.name) : [];
    const changes = changed.map((tool) => tool.listed.name);
    const texts = [
      `answers; agent ${agent} uses ${used.length} of its ${formatCount(count, 'tool')}`,
      ...(odd.length === 0 ? [] : [describeOdd(odd)]),
      ...changes.map((tool) => `tool ${shown(tool)} has changed since it was accepted`),
      ...unaccepted.map((tool) => `tool ${shown(tool)} has not been accepted yet`),
      ...problems.slice(0, 1),
    ];
    const [toAccept, ...more] = [...changes, ...unaccepted];
    const written = noise.get(serverName);
    const beside = written === undefined ? null : noiseFault(written);
    const fixes = [
      ...(toAccept === undefined
        ? []
        : [`review and accept: ${acceptCommand(server, more.length === 0 ? toAccept : null)}`]),
      ...(beside === null ? [] : [beside.fix]),
    ];
    const isFine = odd.length === 0 && problems.length === 0 && fixes.length === 0;
    return {
      name,
      level: isFine ? 'ok' : problems.length > 0 ? level : 'note',
      text: [...texts, ...(beside === null ? [] : [beside.what])].join('; '),
      ...(fixes.length > 0 && { fix: fixes.join('\n') }),
      data: {
        ...data,
        tools: used.map((tool) => tool.definition.name),
        ...(odd.length > 0 && { leftOut: odd.map((tool) => tool.name) }),
        ...(changes.length > 0 && { changed: changes }),
        ...(unaccepted.length > 0 && { notAccepted: unaccepted }),
        ...(written !== undefined && { wrote: written }),
      },
    };
  } catch (error) {
    const { what, fix } = knownFault(server, error);
    return { name, level, text: what, fix, data };
  }
}

/** Reports rules that apply to no call, or not yet; empty if there are no rules. */
function ruleFindingsOf(config: Config, found: Listed): readonly Finding[] {
  const all = withCalled(config.agents);
  const owners = [
    { owner: 'config', rules: config.rules ?? [], on: all },
    ...all.map((agent) => ({ owner: `agent "${agent.name}"`, rules: agent.rules, on: [agent] })),
  ];
  const count = owners.reduce((sum, { rules }) => sum + rules.length, 0);
  if (count === 0) return [];
  const checked = owners.map(({ owner, rules, on }) => {
    const servers = on.flatMap(({ mcp }) => mcp);
    const tools = [
      ...on.flatMap((agent) => agent.tools.tools),
      ...servers.flatMap((server) => found.get(server)?.tools ?? []),
    ];
    const withheld = servers.flatMap((server) => found.get(server)?.known ?? []);
    const unlisted = servers.filter((server) => !found.has(server)).map(({ name }) => name);
    const known = { tools, unlisted, withheld, servers: servers.map(({ name }) => name) };
    const { errors, warnings, unchecked } = ruleFindings(rules, known);
    const owned = (text: string): string => `${owner}: ${text}`;
    return { errors: errors.map(owned), others: [...warnings, ...unchecked].map(owned) };
  });
  const errors = checked.flatMap((each) => each.errors);
  const texts = checked.flatMap((each) => [...each.errors, ...each.others]);
  const data = { rules: count, silent: texts };
  if (texts.length > 0) {
    // Workers refuse to start runs with such a rule.
    const level = errors.length > 0 ? 'problem' : 'note';
    return [{ name: 'rules', level, text: texts.join('\n'), data }];
  }
  const text = `${formatCount(count, 'rule')}; each names a tool that exists`;
  return [{ name: 'rules', level: 'ok', text, data }];
}

function shown(tool: string): string {
  return printable(JSON.stringify(tool.slice(0, 100)));
}
