import { lookup } from 'node:dns/promises';
import { isObject } from '../../core/text/json.js';
import { show } from '../../core/text/text.js';
import { type CliContext, UsageError } from '../context.js';

/** The variable for `--metrics`. */
const VARIABLE = 'PERDURE_METRICS';
const LOOPBACK = '127.0.0.1';
const MAX_PORT = 65_535;

/** Where a worker exports metrics for Prometheus. */
export interface MetricsPlace {
  /** An IP address with a port, as the SDK's runtime takes it. */
  readonly address: string;
  readonly url: string;
  /** What the user has set: the option or the variable. */
  readonly source: string;
}

/**
 * Returns where a worker of this command exports metrics: at `--metrics`, else at PERDURE_METRICS; null
 * if neither is set. Throws a `UsageError` for anything but a port, or an address with a port.
 */
export async function metricsPlace(
  given: string | undefined,
  { env }: Pick<CliContext, 'env'>,
): Promise<MetricsPlace | null> {
  const source = given === undefined ? VARIABLE : '--metrics';
  const text = given ?? env[VARIABLE] ?? '';
  if (given === undefined && text === '') return null;
  const [, name = LOOPBACK, port = ''] = /^(?:(\[[^\]]+\]|[^:\s]+):)?(\d{1,5})$/.exec(text) ?? [];
  if (!(Number(port) >= 1 && Number(port) <= MAX_PORT)) {
    throw new UsageError(
      `${source}: expected a port from 1 to ${MAX_PORT}, or an address with a port such as 0.0.0.0:9464; got ${show(text)}`,
    );
  }
  const found = await lookup(name.replace(/^\[(.*)\]$/, '$1')).catch((cause: unknown) => {
    throw new UsageError(
      `${source}: expected the name or the IP address of this machine, got ${show(name)}, which has no address; omit it for ${LOOPBACK}`,
      { cause },
    );
  });
  const host = found.family === 6 ? `[${found.address}]` : found.address;
  return { address: `${host}:${port}`, url: `http://${host}:${port}/metrics`, source };
}

/** Returns the error of the SDK's runtime as a `UsageError` if the runtime cannot listen at the place. */
export function asMetricsError(error: unknown, { source, address }: MetricsPlace): unknown {
  const message = isObject(error) ? String(error['message']) : '';
  const [, why] = /metrics exporter: (.*?)(?: \(os error \d+\))?$/.exec(message) ?? [];
  if (why === undefined) return error;
  const problem = /in use/i.test(why)
    ? `expected a free port, got ${address}, at which another program listens; stop it, or choose another`
    : `the worker cannot listen at ${address}: ${why}; name an address of this machine`;
  return new UsageError(`${source}: ${problem}`, { cause: error });
}
