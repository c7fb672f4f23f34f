import type { RequestDependencies, Webhook } from '../activities/dependencies.js';
import { assertRequestOptions } from '../agents/check-requests.js';
import type { MayDecide, NotifyTarget, RequestOptions } from '../agents/requests.js';
import { InputError } from '../core/errors.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** Standard Webhooks requires keys of this length. */
const KEY_BYTES = { least: 24, most: 64 };

/**
 * Returns the options of a configuration together with those of one worker. The rules of both
 * apply, both functions must allow a decision, and the worker's `notify` replaces that of the
 * configuration. Throws an `InputError` if an option of the worker is invalid.
 */
export function mergeRequestOptions(
  config: RequestOptions,
  { rules, mayDecide, notify }: RequestOptions,
): RequestOptions {
  assertRequestOptions(
    { rules: config.rules, mayDecide: config.mayDecide, notify: config.notify },
    'config',
  );
  assertRequestOptions({ rules, mayDecide, notify }, 'worker');
  const both = [config.mayDecide, mayDecide].filter((each) => each !== undefined);
  const target = notify ?? config.notify;
  return {
    rules: [...(config.rules ?? []), ...(rules ?? [])],
    ...(both.length > 0 && { mayDecide: all(both) }),
    ...(target && { notify: target }),
  };
}

/**
 * Returns what the activities need. Throws an `InputError` if the key of a webhook is missing or
 * malformed.
 */
export function mergeRequestSettings(
  { rules = [], mayDecide, notify }: RequestOptions,
  env: Environment,
): RequestDependencies {
  return {
    rules,
    ...(mayDecide && { mayDecide }),
    ...(notify && { notify: typeof notify === 'function' ? notify : openWebhook(notify, env) }),
  };
}

function all(functions: readonly MayDecide[]): MayDecide {
  return async (request, decider) => {
    for (const mayDecide of functions) {
      const answer: unknown = await mayDecide(request, decider);
      if (answer !== true) return false;
    }
    return true;
  };
}

function openWebhook({ url, secretEnv }: NotifyTarget, env: Environment): Webhook {
  const secret = env[secretEnv] ?? '';
  const fix = `set it to whsec_ and the base64 of ${KEY_BYTES.least} to ${KEY_BYTES.most} random bytes`;
  if (secret === '') {
    throw new InputError(
      `notify.secretEnv: expected the environment variable ${secretEnv}, got none; ${fix}`,
    );
  }
  const [, base64 = ''] = /^whsec_([A-Za-z\d+/]+={0,2})$/.exec(secret) ?? [];
  const key = Buffer.from(base64, 'base64');
  // The value is a secret, so no message contains it.
  if (key.length < KEY_BYTES.least || key.length > KEY_BYTES.most) {
    throw new InputError(
      `notify.secretEnv: expected a key of Standard Webhooks in ${secretEnv}, got something else; ${fix}`,
    );
  }
  return { url, key };
}
