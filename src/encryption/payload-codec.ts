import {
  CancelledFailure,
  DefaultFailureConverter,
  type LoadedDataConverter,
  type Payload,
  type PayloadCodec,
  defaultPayloadConverter,
  ensureApplicationFailure,
} from '@temporalio/common';
import type { ActivityInterceptorsFactory, WorkerInterceptors } from '@temporalio/worker';
import { InputError, UnreadableError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { payloadProto } from '../temporal/sdk-internals.js';
import { ENCRYPTED, KEY_ID } from '../temporal/server-answers.js';
import type { TenantCodec } from '../temporal/tenant-rules.js';
import { CLEAR_FIX, type EncryptionOptions, type Keyring, keyringOf } from './keyring.js';

/**
 * Returns the payload codec of a configuration with `encryption`, for a Temporal client or worker of
 * your own: it encrypts with the key of the run, and decrypts with each of the keys. Throws an
 * `InputError` that names the faulty key.
 *
 * @example
 * ```ts
 * import { Client } from '@temporalio/client';
 * import { createClient, encryptionCodec } from 'perdure/client';
 *
 * const encryption = { keys: { k1: process.env['KEY_1'] ?? '' }, current: 'k1' };
 *
 * export async function connect(): Promise<void> {
 *   const client = new Client({ dataConverter: { payloadCodecs: [encryptionCodec(encryption)] } });
 *   await using perdure = await createClient({ client, encryption });
 *   console.log(await perdure.list());
 * }
 * ```
 */
export function encryptionCodec(options: EncryptionOptions): PayloadCodec {
  return codecOf(keyringOf(options));
}

function codecOf(keyring: Keyring): TenantCodec {
  const encoding = Buffer.from(ENCRYPTED);
  return {
    tenants: keyring.tenants,
    async encode(payloads, context) {
      const key = keyring.keyFor(context?.workflowId);
      const metadata = { encoding, [KEY_ID]: Buffer.from(key) };
      return payloads.map((payload) => {
        const plain = payloadProto().encode(payload).finish();
        return { metadata, data: keyring.seal('payload', plain, key) };
      });
    },
    async decode(payloads, context) {
      const reader = { keyring, id: context?.workflowId };
      return payloads.map((payload) => decrypted(reader, payload));
    },
  };
}

/** Returns the option of clients and workers with the codec; none without keys. */
export function dataConverter(keyring: Keyring | null): {
  readonly dataConverter?: { readonly payloadCodecs: PayloadCodec[] };
} {
  return keyring === null ? {} : { dataConverter: { payloadCodecs: [codecOf(keyring)] } };
}

/**
 * Throws an `InputError` if encryption is required or ids are hashed, and a client of Temporal's SDK has no
 * codec: what it sends would be in clear, also the ids that callers choose.
 */
export function assertEncrypts(
  client: {
    readonly options: { readonly loadedDataConverter: LoadedDataConverter };
  },
  keyring: Keyring | null,
): void {
  if (keyring === null || (!keyring.required && keyring.ids === null)) return;
  if (client.options.loadedDataConverter.payloadCodecs.length > 0) return;
  throw new InputError(
    `client: expected a client with a payload codec, because \`encryption.${keyring.required ? 'required` is true' : 'hashIds` is set'}, got one that sends in clear; give it \`dataConverter: { payloadCodecs: [encryptionCodec(encryption)] }\``,
  );
}

interface Reader {
  readonly keyring: Keyring;
  /** The id of the workflow; undefined if the SDK, or a codec server, does not know it. */
  readonly id: string | undefined;
}

/**
 * Returns the payload in clear. One that is not encrypted, as in runs of before, stays as it is, unless
 * encryption is required.
 */
function decrypted({ keyring, id: workflowId }: Reader, payload: Payload): Payload {
  const { metadata, data } = payload;
  const encoding = textOf(metadata?.['encoding']);
  const whose = workflowId === undefined ? '' : ` of "${visible(workflowId)}"`;
  if (encoding !== ENCRYPTED) {
    if (!keyring.required) return payload;
    throw new UnreadableError(
      `a payload${whose} is in clear (${visible(encoding)}), and \`encryption.required\` refuses it: it was written without a key; ${CLEAR_FIX}`,
    );
  }
  const id = textOf(metadata?.[KEY_ID]);
  try {
    return payloadProto().decode(keyring.open('payload', id, data ?? new Uint8Array(), workflowId));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UnreadableError(`a payload cannot be read: ${why}`, { cause: error });
  }
}

function textOf(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString('utf8');
}

const sealing = new DefaultFailureConverter({ encodeCommonAttributes: true });

/**
 * Returns the interceptors of a worker, below one that makes the messages of failed activities payloads,
 * which the codec encrypts. The SDK takes the failure that an error already has. Cancellations, and
 * errors that the SDK handles itself, have no text of perdure or of a tool.
 */
export function sealedFailures(given: WorkerInterceptors = {}): WorkerInterceptors {
  return { ...given, activity: [sealFailures, ...(given.activity ?? [])] };
}

/** Errors that the SDK handles itself, by name. */
const HANDLED = new Set(['AbortError', 'CompleteAsyncError']);

/**
 * The types of failures that perdure itself names. Any other is the word of a provider, an adapter, or
 * an error of user code, and no codec encrypts it.
 */
const OWN_TYPES = new Set(
  (
    'AgentNeedsTime AgentRefused AgentUnknown ForeignContext ForkRefused McpUnreachable NotifyFailed ' +
    'Retry Undelivered'
  ).split(' '),
);
const HIDDEN_TYPE = 'Encrypted';

const sealFailures: ActivityInterceptorsFactory = () => ({
  inbound: {
    async execute(input, next) {
      try {
        return await next(input);
      } catch (error) {
        const isHandled = error instanceof Error && HANDLED.has(error.name);
        if (isHandled || error instanceof CancelledFailure) throw error;
        const failure = ensureApplicationFailure(error);
        const converted = sealing.errorToFailure(failure, defaultPayloadConverter);
        const { applicationFailureInfo: info } = converted;
        if (info && !OWN_TYPES.has(info.type ?? '')) info.type = HIDDEN_TYPE;
        throw Object.assign(failure, { failure: converted });
      }
    },
  },
});
