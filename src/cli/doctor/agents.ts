import { relative } from 'node:path';
import { needsModel, withCalled } from '../../agents/agent-definition.js';
import type { Agent } from '../../agents/agent.js';
import { type Config, defineConfig } from '../../config.js';
import { isOwnedByAnthropic } from '../../models/anthropic/model.js';
import { LOCAL_SERVERS, type RunningServer, findLocalServer } from '../../models/known-models.js';
import { type ModelCatalog, createModelCatalog } from '../../models/model-catalog.js';
import { type ModelOptions, isDemoEntry } from '../../models/model-entry.js';
import { isModelError } from '../../models/model.js';
import type { CliContext } from '../context.js';
import { formatCount } from '../format/format.js';
import { configFile } from '../input/load-config.js';
import { BrokenManifestError } from '../input/manifest.js';
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
  const findings = config.agents.flatMap((agent) => agentFindings(agent, { config, env, local }));
  return [...inFullOnce(findings), localFinding(local)];
}

/** Explains the demo model at the first agent that has it; the others only name it. */
function inFullOnce(findings: readonly Finding[]): readonly Finding[] {
  const [first] = findings.filter(({ data }) => data['provider'] === 'demo');
  return findings.map((finding) => {
    const { name, level, data } = finding;
    if (first === undefined || finding === first || data['provider'] !== 'demo') return finding;
    return { name, level, text: `the demo model, as ${first.name}`, data };
  });
}

interface Surroundings {
  readonly config: Config;
  readonly env: Environment;
  readonly local: readonly RunningServer[];
}

/** Whether an agent calls a model: also a graph whose functions may generate with the model that it names. */
function usesModel(agent: Agent): boolean {
  return needsModel(agent) || agent.model !== null;
}

/** Returns the names of the models that the agent calls; empty if it calls none, or none is set. */
function modelNamesOf(agent: Agent, env: Environment): readonly string[] {
  if (!usesModel(agent)) return [];
  const first = agent.model ?? (env['PERDURE_MODEL']?.trim() || null);
  return first === null ? [] : [first, ...agent.fallbacks];
}

/** What a person can do before there is a key. */
const DEMO_WORKS =
  'needs no key and calls the tools that a message names, so tools, approvals, and restarts can be tried';

function agentFindings(agent: Agent, given: Surroundings): readonly Finding[] {
  const name = `agent ${agent.name}`;
  if (!usesModel(agent)) {
    const text =
      agent.graph === undefined ? 'calls no model' : 'no node calls a model, and none is set';
    return [{ name, level: 'ok', text, data: { model: null } }];
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
  if (isDemo(model, config)) {
    const text = `the demo model: a fixed script, not an LLM; it ${DEMO_WORKS}`;
    const fix = `to use an LLM: ${llmSettings(local)}; if the configuration has model: 'demo', also name the LLM there`;
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
  const entry = models[name];
  return entry === undefined ? name === 'demo' : isDemoEntry(entry);
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
    const fix =
      error instanceof BrokenManifestError
        ? 'correct that file; no configuration below its folder can be loaded before'
        : 'fix the file, or name another one with --config';
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
