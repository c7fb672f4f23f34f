import { show } from '../core/text/format-value.js';
import { learnSecrets } from '../secrets/known.js';
import type { LiveLimits } from './live-limits.js';
import { LiveOptionsError } from '../core/errors.js';

/** Where a worker serves what is being said. */
export interface LiveOptions {
  /** Default: one that is free. */
  readonly port?: number;
  /** Address to listen at; default 127.0.0.1. Any other than this machine's own needs a token. */
  readonly host?: string;
  /** Asked of every reader, as `Authorization: Bearer …`; default PERDURE_LIVE_TOKEN, else none. */
  readonly token?: string;
  /** What readers may take at most; by default three of eight file descriptors, or less. */
  readonly limits?: Partial<LiveLimits>;
}

/** Where exactly, all defaults filled in. */
export interface ListenSettings {
  readonly port: number;
  readonly host: string;
  /** Empty where none is asked for. */
  readonly token: string;
  readonly limits?: Partial<LiveLimits>;
}

/** Throws with the value at fault and the cure. */
export function resolveLiveOptions(
  { port = 0, host = '127.0.0.1', token, limits = {} }: LiveOptions,
  env: Readonly<Record<string, string | undefined>>,
): ListenSettings {
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new LiveOptionsError(`live.port: ${port} is no port; give 1 to 65535, or 0 for any`);
  }
  const known = token ?? env['PERDURE_LIVE_TOKEN'] ?? '';
  if (!/^[\x21-\x7e]*$/.test(known)) {
    throw new LiveOptionsError(
      'live.token holds characters that no HTTP header can carry (a space, a line break?)',
    );
  }
  if (known === '' && !isLoopback(host)) {
    throw new LiveOptionsError(
      `live.host: at ${host} anybody could read the runs; set PERDURE_LIVE_TOKEN (or live.token), ` +
        'or leave the host out to serve this machine only',
    );
  }
  const [wrong] = Object.entries(limits).filter(([, value]) => !(value >= 1 && value < 2 ** 31));
  if (wrong !== undefined) {
    const [name, value] = wrong;
    throw new LiveOptionsError(`live.limits.${name}: expected a number from 1, got ${show(value)}`);
  }
  if (known !== '') learnSecrets({ values: [known] });
  return { port, host, token: known, limits };
}

/** A name or address by which only this machine reaches itself. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return bare === 'localhost' || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare);
}
