import { toMs } from '../core/text/duration.js';
import { isLoopback } from '../core/text/loopback.js';
import { show } from '../core/text/format-value.js';
import { learnSecrets } from '../secrets/known.js';
import type { LimitsInForce, LiveLimits } from './live-limits.js';
import { LiveOptionsError } from '../core/errors.js';

/** How a worker serves live streams. */
export interface LiveOptions {
  /** The port to listen on; default: any free port. */
  readonly port?: number;
  /**
   * The address to listen on; default 127.0.0.1. Any address that is not loopback needs a token.
   */
  readonly host?: string;
  /**
   * The token that readers must send as `Authorization: Bearer …`; default PERDURE_LIVE_TOKEN, else
   * none is needed.
   */
  readonly token?: string;
  /** Limits on readers; by default they get at most three eighths of the file descriptors. */
  readonly limits?: Partial<LiveLimits>;
}

/** `LiveOptions` with all defaults filled in. */
export interface ListenSettings {
  readonly port: number;
  readonly host: string;
  /** The token that readers must send; empty if none is needed. */
  readonly token: string;
  readonly limits?: Partial<LimitsInForce>;
}

/** Fills in defaults. Throws a `LiveOptionsError` with the value and the fix. */
export function resolveLiveOptions(
  { port = 0, host = '127.0.0.1', token, limits = {} }: LiveOptions,
  env: Readonly<Record<string, string | undefined>>,
): ListenSettings {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new LiveOptionsError(
      `live.port: expected 1 to 65535, or 0 for any free port; got ${port}`,
    );
  }
  const secret = token ?? env['PERDURE_LIVE_TOKEN'] ?? '';
  if (!/^[\x21-\x7e]*$/.test(secret)) {
    throw new LiveOptionsError(
      'live.token: expected visible ASCII characters, got others; remove spaces and line breaks',
    );
  }
  if (secret === '' && !isLoopback(host)) {
    throw new LiveOptionsError(
      `live.host: ${host} lets other machines read the runs; set PERDURE_LIVE_TOKEN (or live.token), ` +
        'or omit the host to serve this machine only',
    );
  }
  if (secret !== '') learnSecrets({ values: [secret] });
  return { port, host, token: secret, limits: inForce(limits) };
}

/** Each limit in force, by the option that sets it. */
const LIMITS: Readonly<Record<keyof LiveLimits, keyof LimitsInForce>> = {
  streams: 'streams',
  streamsPerClient: 'streamsPerClient',
  waiting: 'waiting',
  headersTimeout: 'headersMs',
  requestTimeout: 'requestMs',
  openTimeout: 'openMs',
  readTimeout: 'stalledMs',
};

/** Returns the limits that the options set. Throws a `LiveOptionsError` for an invalid one. */
function inForce(limits: Partial<LiveLimits>): Partial<LimitsInForce> {
  const set: { -readonly [Name in keyof LimitsInForce]?: number } = {};
  for (const [option, given] of Object.entries(limits)) {
    if (!isLimit(option)) {
      const known = Object.keys(LIMITS).join(', ');
      throw new LiveOptionsError(
        `live.limits: ${show(option)} is not an option; the options are ${known}`,
      );
    }
    const value = option.endsWith('Timeout') ? toMs(given) : Number(given);
    if (!(value >= 1 && value < 2 ** 31)) {
      const expected = option.endsWith('Timeout')
        ? 'a whole number of ms or words such as "5 seconds"'
        : 'a number from 1';
      throw new LiveOptionsError(`live.limits.${option}: expected ${expected}, got ${show(given)}`);
    }
    set[LIMITS[option]] = value;
  }
  return set;
}

function isLimit(name: string): name is keyof LiveLimits {
  return Object.hasOwn(LIMITS, name);
}
