import type { Agent } from '../../agents/agent.js';
import type { Config } from '../../config.js';
import { findLocalServer, LOCAL_SERVERS, type FoundServer } from '../../models/local-servers.js';
import type { Finding } from './finding.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Where a model is asked; `key` is the name of the variable, never what it holds. */
interface Provider {
  readonly model: string;
  readonly baseUrl: string | null;
  readonly keyVariable: string;
}

/** The model of each agent, as a worker of this configuration and environment would take it. */
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
  readonly local: readonly FoundServer[];
}

function agentFinding(agent: Agent, { config, env, local }: Surroundings): Finding {
  const name = `agent ${agent.name}`;
  const model = agent.model ?? env['PERDURE_MODEL']?.trim() ?? '';
  if (model === '') {
    const cure = 'give the agent a model, or set PERDURE_MODEL';
    return { name, level: 'problem', text: 'names no model', cure, data: { model: null } };
  }
  const entry = config.models?.[model];
  if (entry !== undefined && 'call' in entry) {
    const text = `model ${model}: an adapter of the configuration`;
    return { name, level: 'ok', text, data: { model, provider: 'adapter' } };
  }
  if (entry === undefined && model === 'demo') {
    const text = 'the demo model: code that chooses tools by the words of a question, no LLM';
    const cure = `for an LLM: ${waysToLlm(local)}`;
    return { name, level: 'note', text, cure, data: { model, provider: 'demo' } };
  }
  return providerFinding(name, {
    env,
    local,
    provider: {
      model: entry?.model ?? model,
      baseUrl: entry?.baseUrl ?? (env['OPENAI_BASE_URL']?.trim() || null),
      keyVariable: entry?.apiKeyEnv ?? 'OPENAI_API_KEY',
    },
  });
}

function providerFinding(
  name: string,
  given: Omit<Surroundings, 'config'> & { readonly provider: Provider },
): Finding {
  const { env, local } = given;
  const { model, baseUrl, keyVariable } = given.provider;
  const keyPresent = Boolean(env[keyVariable]?.trim());
  const place = baseUrl === null ? null : withoutSecrets(baseUrl);
  const data = { model, provider: 'openai', baseUrl: place, keyVariable, keyPresent };
  const at = place === null ? "OpenAI's API" : place;
  if (!keyPresent && baseUrl === null) {
    const text = `model ${model}: no key in ${keyVariable}, so its runs would be blocked`;
    const cure = keyVariable === 'OPENAI_API_KEY' ? waysToLlm(local) : `set ${keyVariable}`;
    return { name, level: 'problem', text, cure, data };
  }
  const key = keyPresent
    ? `key from ${keyVariable}`
    : `no key in ${keyVariable} (a placeholder is sent)`;
  return { name, level: 'ok', text: `model ${model} at ${at}, ${key}`, data };
}

function waysToLlm([found]: readonly FoundServer[]): string {
  const here =
    found === undefined ? '' : ` (${found.name} answers: OPENAI_BASE_URL=${found.baseUrl})`;
  return `set OPENAI_API_KEY, or OPENAI_BASE_URL and PERDURE_MODEL${here}`;
}

/** An address may hold a name and a password, or a key as a parameter. */
function withoutSecrets(url: string): string {
  try {
    const { origin, pathname } = new URL(url);
    return `${origin}${pathname}`;
  } catch {
    return 'an address that is no URL';
  }
}

async function localServers(): Promise<readonly FoundServer[]> {
  const found = await Promise.all(LOCAL_SERVERS.map((server) => findLocalServer([server])));
  return found.filter((server) => server !== null);
}

function localFinding(found: readonly FoundServer[]): Finding {
  const servers = found.map(({ name, baseUrl }) => ({ name, baseUrl }));
  const text =
    found.length === 0
      ? 'none answers on the usual ports of this machine'
      : found.map(({ name, baseUrl }) => `${name} at ${baseUrl}`).join(', ');
  return { name: 'local models', level: 'ok', text, data: { servers } };
}
