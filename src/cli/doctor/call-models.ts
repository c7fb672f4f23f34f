import { withCalled } from '../../agents/catalog.js';
import type { Config } from '../../config.js';
import { createModelCatalog, type ModelCatalog } from '../../models/model-catalog.js';
import { isModelError } from '../../models/model-error.js';
import type { Finding } from './finding.js';
import { modelNameOf } from './models.js';

type Environment = Readonly<Record<string, string | undefined>>;

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
  const names = withCalled(config.agents).map((agent) => modelNameOf(agent, env));
  const models = [...new Set(names)].filter((name) => name !== null && !isDemo(name, config));
  if (!call) return models.map((model) => notCalled(model ?? '', '--no-model'));
  let catalog: ModelCatalog;
  try {
    catalog = createModelCatalog(config.models ?? {}, env);
  } catch (error) {
    return [{ name: 'models', level: 'problem', text: textOf(error), data: { called: false } }];
  }
  const found = await Promise.all(
    models.map((model) => answerOf(model ?? '', { catalog, config })),
  );
  return found.filter((finding) => finding !== null);
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
  const finding = { name: `model ${name}`, data: { model: name, called: true } };
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
    if (!hasAnswered(error)) return { ...finding, level: 'problem', text: textOf(error) };
  }
  const text = `answered within ${Math.ceil(performance.now() - began)} ms`;
  return { ...finding, level: 'ok', text };
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
