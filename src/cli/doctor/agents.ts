import { relative } from 'node:path';
import { needsModel, withCalled } from '../../agents/agent-definition.js';
import type { Agent } from '../../agents/agent.js';
import { type Config, defineConfig } from '../../config.js';
import type { ToolDefinition } from '../../core/definition/tool-definition.js';
import { printable } from '../../core/text/text.js';
import { acceptCommand, compareTools, describeOdd, serverTools } from '../../mcp/lock-tools.js';
import type { McpServer } from '../../mcp/mcp-server.js';
import { type McpSessions, createSessions } from '../../mcp/session.js';
import { isOwnedByAnthropic } from '../../models/anthropic/model.js';
import { LOCAL_SERVERS, type RunningServer, findLocalServer } from '../../models/known-models.js';
import {
  type ModelCatalog,
  type ModelOptions,
  createModelCatalog,
} from '../../models/model-entry.js';
import { isModelError } from '../../models/model.js';
import type { ToolLock } from '../../storage/tool-lock.js';
import { ruleFindings } from '../../validation/rule-names.js';
import type { CliContext } from '../context.js';
import { formatCount } from '../format/format.js';
import { configFile } from '../input/load-config.js';
import type { Finding } from './finding.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The endpoint of a model. Holds the name of the key's variable, never its value. */
interface Provider {
  readonly name: 'openai' | 'anthropic';
  readonly model: string;
  readonly baseUrl: string | null;
  readonly keyVariable: string;
}

/**
 * Checks the model of each agent, as a worker with this configuration and environment would use it.
 */
export async function modelFindings(config: Config, env: Environment): Promise<readonly Finding[]> {
  const local = await localServers();
  return [
    ...config.agents.flatMap((agent) => agentFindings(agent, { config, env, local })),
    localFinding(local),
  ];
}

interface Surroundings {
  readonly config: Config;
  readonly env: Environment;
  readonly local: readonly RunningServer[];
}

/** Returns the names of the models that the agent calls; empty if it calls none, or none is set. */
function modelNamesOf(agent: Agent, env: Environment): readonly string[] {
  if (!needsModel(agent)) return [];
  const first = agent.model ?? (env['PERDURE_MODEL']?.trim() || null);
  return first === null ? [] : [first, ...agent.fallbacks];
}

/** What a person can do before there is a key. */
const DEMO_WORKS =
  'needs no key and calls the tools that a message names, so tools, approvals, and restarts can be tried';

function agentFindings(agent: Agent, given: Surroundings): readonly Finding[] {
  const name = `agent ${agent.name}`;
  if (!needsModel(agent)) {
    return [{ name, level: 'ok', text: 'calls no model', data: { model: null } }];
  }
  const [first, ...fallbacks] = modelNamesOf(agent, given.env);
  if (first === undefined) {
    const fix = `give the agent a model, or set PERDURE_MODEL; the model "demo" ${DEMO_WORKS}`;
    return [{ name, level: 'problem', text: 'no model is set', fix, data: { model: null } }];
  }
  return [
    modelFinding(name, first, given),
    ...fallbacks.map((model) => modelFinding(`${name}, fallback ${model}`, model, given)),
  ];
}

function modelFinding(name: string, model: string, { config, env, local }: Surroundings): Finding {
  const entry = config.models?.[model];
  if (entry !== undefined && 'call' in entry) {
    const text = `model ${model}: an adapter from the configuration`;
    return { name, level: 'ok', text, data: { model, provider: 'adapter' } };
  }
  if (entry === undefined && model === 'demo') {
    const text = `the demo model: a fixed script, not an LLM; it ${DEMO_WORKS}`;
    const fix = `to use an LLM: ${llmSettings(local)}`;
    return { name, level: 'note', text, fix, data: { model, provider: 'demo' } };
  }
  return providerFinding(name, {
    env,
    local,
    provider: findProvider(model, env, entry),
  });
}

function findProvider(
  model: string,
  env: Environment,
  { api, baseUrl, apiKeyEnv, model: own = model }: ModelOptions = {},
): Provider {
  const isOwned = api === undefined && baseUrl === undefined && isOwnedByAnthropic(own, env);
  const name = api === 'anthropic' || isOwned ? 'anthropic' : 'openai';
  const prefix = name.toUpperCase();
  return {
    name,
    model: own,
    baseUrl: baseUrl ?? (env[`${prefix}_BASE_URL`]?.trim() || null),
    keyVariable: apiKeyEnv ?? `${prefix}_API_KEY`,
  };
}

function providerFinding(
  name: string,
  given: Omit<Surroundings, 'config'> & { readonly provider: Provider },
): Finding {
  const { env, local } = given;
  const { name: provider, model, baseUrl, keyVariable } = given.provider;
  const keyPresent = Boolean(env[keyVariable]?.trim());
  const place = baseUrl === null ? null : withoutSecrets(baseUrl);
  const data = { model, provider, baseUrl: place, keyVariable, keyPresent };
  const own = provider === 'openai' ? "OpenAI's API" : "Anthropic's API";
  const endpoint = place === null ? own : place;
  if (!keyPresent && baseUrl === null) {
    const text = `model ${model}: no key in ${keyVariable}, so its runs are blocked`;
    const isDefault = keyVariable === 'OPENAI_API_KEY';
    const demo = `or try it without a key: the model "demo" ${DEMO_WORKS}`;
    const fix = isDefault ? `${llmSettings(local)}\n${demo}` : `set ${keyVariable}`;
    return { name, level: 'problem', text, fix, data };
  }
  const key = keyPresent
    ? `key from ${keyVariable}`
    : `no key in ${keyVariable} (a placeholder is sent)`;
  return { name, level: 'ok', text: `model ${model} at ${endpoint}, ${key}`, data };
}

function llmSettings([found]: readonly RunningServer[]): string {
  const here =
    found === undefined ? '' : ` (${found.name} answers: OPENAI_BASE_URL=${found.baseUrl})`;
  return `set OPENAI_API_KEY, or OPENAI_BASE_URL and PERDURE_MODEL${here}`;
}

/** Removes user, password, and query, which may hold a key; the API's version stays. */
function withoutSecrets(url: string): string {
  try {
    const { origin, pathname, searchParams } = new URL(url);
    const version = searchParams.get('api-version');
    return `${origin}${pathname}${version === null ? '' : `?api-version=${version}`}`;
  } catch {
    return 'an address that is not a URL';
  }
}

async function localServers(): Promise<readonly RunningServer[]> {
  const found = await Promise.all(LOCAL_SERVERS.map((server) => findLocalServer([server])));
  return found.filter((server) => server !== null);
}

function localFinding(found: readonly RunningServer[]): Finding {
  const servers = found.map(({ name, baseUrl }) => ({ name, baseUrl }));
  const text =
    found.length === 0
      ? 'none answers on the default ports of this machine'
      : found.map(({ name, baseUrl }) => `${name} at ${baseUrl}`).join(', ');
  return { name: 'local models', level: 'ok', text, data: { servers } };
}

const WITHIN_MS = 30_000;
/** The smallest limit that OpenAI's Responses API accepts. */
const MIN_RESPONSES_TOKENS = 16;

/**
 * Requests one token from each model of the configuration, as a worker would. Without `call`, reports the
 * models as not checked.
 */
export async function callModels(
  config: Config,
  env: Environment,
  { call }: { readonly call: boolean },
): Promise<readonly Finding[]> {
  const names = withCalled(config.agents).flatMap((agent) => modelNamesOf(agent, env));
  const models = [...new Set(names)].filter((name) => !isDemo(name, config));
  if (!call) return models.map((model) => notCalled(model, '--no-model'));
  let catalog: ModelCatalog;
  try {
    catalog = createModelCatalog(config.models ?? {}, env);
  } catch (error) {
    return [{ name: 'models', level: 'problem', text: textOf(error), data: { called: false } }];
  }
  const found = await Promise.all(models.map((model) => answerOf(model, { catalog, config })));
  return found.filter((each) => each !== null);
}

function isDemo(name: string, { models = {} }: Config): boolean {
  return name === 'demo' && models[name] === undefined;
}

function notCalled(model: string, why: string): Finding {
  const text = `not checked: it was not called (${why})`;
  return { name: `model ${model}`, level: 'skipped', text, data: { model, called: false } };
}

/** Returns null for a model without a key and an address, which the check of its agent reports. */
async function answerOf(
  name: string,
  { catalog, config }: { readonly catalog: ModelCatalog; readonly config: Config },
): Promise<Finding | null> {
  const each = { name: `model ${name}`, data: { model: name, called: true } };
  const entry = config.models?.[name];
  const isResponses = entry !== undefined && 'api' in entry && entry.api === 'responses';
  const began = performance.now();
  try {
    const resolved = catalog.resolve(name);
    await resolved.model.call(
      {
        model: resolved.name,
        instructions: 'Answer with one word.',
        messages: [{ role: 'user', text: 'Are you there?' }],
        tools: [],
        toolChoice: 'none',
        settings: { maxOutputTokens: isResponses ? MIN_RESPONSES_TOKENS : 1 },
      },
      { signal: AbortSignal.timeout(WITHIN_MS) },
    );
  } catch (error) {
    if (isModelError(error) && error.details.type === 'no_credentials') return null;
    if (!hasAnswered(error)) return { ...each, level: 'problem', text: textOf(error) };
  }
  const text = `answered within ${Math.ceil(performance.now() - began)} ms`;
  return { ...each, level: 'ok', text };
}

/**
 * Returns whether the error comes from a model that works: its reply has no text or reached the
 * limit of one token.
 */
function hasAnswered(error: unknown): boolean {
  if (!isModelError(error)) return false;
  return error.details.kind === 'empty' || /output limit was reached/i.test(error.message);
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

interface Configuration {
  readonly finding: Finding;
  /** Empty if the configuration cannot be loaded, so that the other checks can run. */
  readonly config: Config;
  /** Whether no file was found or named. */
  readonly isBuiltIn: boolean;
}

/** Checks which configuration is in use, and whether it can be loaded. */
export async function readConfiguration(context: CliContext): Promise<Configuration> {
  const name = 'configuration';
  try {
    const config = await context.config();
    const file = configFile({
      file: context.options.config,
      folder: process.cwd(),
      env: context.env,
    });
    const from = file === null ? 'built in (no perdure.config.ts here)' : relative('.', file);
    const agents = config.agents.map((agent) => agent.name);
    const text = `${from}: ${formatCount(agents.length, 'agent')}${agents.length > 0 ? `, ${agents.join(', ')}` : ''}`;
    const data = { file, agents };
    return { config, isBuiltIn: file === null, finding: { name, level: 'ok', text, data } };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const fix = 'fix the file, or name another one with --config';
    return {
      config: defineConfig({ agents: [] }),
      isBuiltIn: false,
      finding: {
        name,
        level: 'problem',
        text,
        fix,
        data: { file: context.options.config ?? null },
      },
    };
  }
}

/** Time for a server to start and answer. A slower server may still work for a run. */
const LIST_WITHIN_MS = 8_000;

/** The servers whose tools could be listed, with the tools that agents get of them. */
type Listed = Map<McpServer, readonly ToolDefinition[]>;

/**
 * Checks the MCP servers of each agent by listing their tools, as a worker with this environment
 * would, and then what the rules name.
 */
export async function mcpFindings(
  config: Config,
  env: Readonly<Record<string, string | undefined>>,
  lock: () => ToolLock,
): Promise<readonly Finding[]> {
  const sessions = createSessions(env);
  const found: Listed = new Map();
  try {
    const findings = await Promise.all(
      withCalled(config.agents).flatMap((agent) =>
        agent.mcp.map((server) =>
          finding({ sessions, lock, found }, { agent: agent.name, server }),
        ),
      ),
    );
    return [...findings, ...ruleFindingsOf(config, found)];
  } finally {
    await sessions.close();
  }
}

async function finding(
  { sessions, lock, found }: { sessions: McpSessions; lock: () => ToolLock; found: Listed },
  { agent, server }: { agent: string; server: McpServer },
): Promise<Finding> {
  const { name: serverName, startup, transport } = server;
  const name = `mcp ${serverName}`;
  const level = startup === 'strict' ? 'problem' : 'note';
  const data = { agent, server: serverName, transport };
  try {
    const listed = await sessions
      .of(server)
      .listing({ maxAgeMs: LIST_WITHIN_MS, waitMs: LIST_WITHIN_MS });
    const { used, odd, problems } = serverTools(server, listed);
    found.set(
      server,
      used.map((tool) => tool.definition),
    );
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
    const [toAccept] = [...changes, ...unaccepted];
    const isFine = odd.length === 0 && problems.length === 0 && toAccept === undefined;
    return {
      name,
      level: isFine ? 'ok' : problems.length > 0 ? level : 'note',
      text: texts.join('; '),
      ...(toAccept !== undefined && {
        fix: `review and accept: ${acceptCommand(server, toAccept)}`,
      }),
      data: {
        ...data,
        tools: used.map((tool) => tool.definition.name),
        ...(odd.length > 0 && { leftOut: odd.map((tool) => tool.name) }),
        ...(changes.length > 0 && { changed: changes }),
        ...(unaccepted.length > 0 && { notAccepted: unaccepted }),
      },
    };
  } catch (error) {
    return { name, level, text: error instanceof Error ? error.message : String(error), data };
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
  const texts = owners.flatMap(({ owner, rules, on }) => {
    const servers = on.flatMap(({ mcp }) => mcp);
    const tools = [
      ...on.flatMap((agent) => agent.tools.tools),
      ...servers.flatMap((server) => found.get(server) ?? []),
    ];
    const unlisted = servers.filter((server) => !found.has(server)).map(({ name }) => name);
    const { errors, warnings, unchecked } = ruleFindings(rules, { tools, unlisted });
    return [...errors, ...warnings, ...unchecked].map((text) => `${owner}: ${text}`);
  });
  const data = { rules: count, silent: texts };
  if (texts.length > 0) return [{ name: 'rules', level: 'note', text: texts.join('\n'), data }];
  const text = `${formatCount(count, 'rule')}; each names a tool that exists`;
  return [{ name: 'rules', level: 'ok', text, data }];
}

function shown(tool: string): string {
  return printable(JSON.stringify(tool.slice(0, 100)));
}
