import { createHash } from 'node:crypto';
import {
  CancelledFailure,
  DefaultFailureConverter,
  type Payload,
  type PayloadCodec,
  type SerializationContext,
  defaultPayloadConverter,
  ensureApplicationFailure,
} from '@temporalio/common';
import type { ActivityInterceptorsFactory, WorkerInterceptors } from '@temporalio/worker';
import { UnreadableError } from '../core/errors.js';
import { visible } from '../core/state/summaries.js';
import { payloadProto } from '../temporal/sdk-internals.js';
import { ENCRYPTED, KEY_ID } from '../temporal/server-answers.js';
import { CLEAR_FIX, type EncryptionOptions, type Keyring, keyringOf } from './keyring.js';

/**
 * Returns the payload codec of a configuration with `encryption`, for a Temporal client or worker of
 * your own: it encrypts with the current key, and decrypts with each of the keys. Throws an
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

/** The metadata with the hash of the id of the workflow to which a payload belongs. */
const OWNER = 'encryption-owner';
const OWNER_BYTES = 16;
/** What a schedule appends to the id of each workflow that it starts. */
const FIRED_AT = /-\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

function codecOf(keyring: Keyring): PayloadCodec {
  const unbound = {
    encoding: Buffer.from(ENCRYPTED),
    [KEY_ID]: Buffer.from(keyring.current),
  };
  return {
    async encode(payloads, context) {
      const owner = ownerOf(context);
      const metadata = owner === undefined ? unbound : { ...unbound, [OWNER]: owner };
      return payloads.map((payload) => {
        const plain = payloadProto().encode(payload).finish();
        return { metadata, data: keyring.seal('payload', plain, owner) };
      });
    },
    async decode(payloads, context) {
      const reader = { keyring, id: context?.workflowId };
      return payloads.map((payload) => decrypted(reader, payload));
    },
  };
}

/**
 * Returns the hash of the id of the workflow; undefined if the SDK does not know it. The workflows of a
 * schedule share one, because the schedule encrypts their input before they have ids.
 */
function ownerOf(context: Partial<SerializationContext> | undefined): Buffer | undefined {
  const id = context?.workflowId?.replace(FIRED_AT, '');
  if (id === undefined) return undefined;
  return createHash('sha256').update(id).digest().subarray(0, OWNER_BYTES);
}

/** Returns the option of clients and workers with the codec; none without keys. */
export function dataConverter(keyring: Keyring | null): {
  readonly dataConverter?: { readonly payloadCodecs: PayloadCodec[] };
} {
  return keyring === null ? {} : { dataConverter: { payloadCodecs: [codecOf(keyring)] } };
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
  const owner = metadata?.[OWNER] ?? undefined;
  const expected = workflowId === undefined ? undefined : ownerOf({ workflowId });
  if (owner && expected && !expected.equals(owner)) {
    throw new UnreadableError(
      `a payload${whose} belongs to another workflow: it was copied here; restore what was here, or end the run`,
    );
  }
  try {
    return payloadProto().decode(keyring.open('payload', id, data ?? new Uint8Array(), owner));
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
