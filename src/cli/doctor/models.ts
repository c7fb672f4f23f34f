import { needsModel } from '../../agents/catalog.js';
import type { Agent } from '../../agents/agent.js';
import type { Config } from '../../config.js';
import { findLocalServer, LOCAL_SERVERS, type RunningServer } from '../../models/local-servers.js';
import { isOwnedByAnthropic } from '../../models/anthropic/model.js';
import type { ModelOptions } from '../../models/model-entry.js';
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
    ...config.agents.map((agent) => agentFinding(agent, { config, env, local })),
    localFinding(local),
  ];
}

interface Surroundings {
  readonly config: Config;
  readonly env: Environment;
  readonly local: readonly RunningServer[];
}

/** Returns the name of the model that the agent calls; null if it calls none, or none is set. */
export function modelNameOf(agent: Agent, env: Environment): string | null {
  if (!needsModel(agent)) return null;
  return agent.model ?? (env['PERDURE_MODEL']?.trim() || null);
}

function agentFinding(agent: Agent, { config, env, local }: Surroundings): Finding {
  const name = `agent ${agent.name}`;
  if (!needsModel(agent)) {
    return { name, level: 'ok', text: 'calls no model', data: { model: null } };
  }
  const model = modelNameOf(agent, env);
  if (model === null) {
    const fix =
      'give the agent a model, or set PERDURE_MODEL; the model "demo" needs no key and calls the tools that a message names';
    return { name, level: 'problem', text: 'no model is set', fix, data: { model: null } };
  }
  const entry = config.models?.[model];
  if (entry !== undefined && 'call' in entry) {
    const text = `model ${model}: an adapter from the configuration`;
    return { name, level: 'ok', text, data: { model, provider: 'adapter' } };
  }
  if (entry === undefined && model === 'demo') {
    const text = 'the demo model: a fixed script, not an LLM';
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
    const fix = keyVariable === 'OPENAI_API_KEY' ? llmSettings(local) : `set ${keyVariable}`;
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
