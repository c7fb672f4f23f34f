import { claimAttachments } from '../client/attach.js';
import { type ForkOptions, forkRun } from '../client/fork-run.js';
import { type RunName, nameRun } from '../client/run-ids.js';
import { IdTakenError, InputError } from '../core/errors.js';
import { canonicalJson, sha256Hex } from '../core/text/json.js';
import { detectMediaType, show } from '../core/text/text.js';
import type { Attachment } from '../core/transcript/messages.js';
import { tenantIdPrefix } from '../temporal/tenant-rules.js';
import { type Place, openRun, startMemo, unseen } from './access.js';
import type { AttachmentInput } from './input-fields.js';
import type { Principal } from './principals.js';

const ID_DIGITS = 24;

/** Returns the id of the run that an operation of this principal starts. It is always the same. */
export function idOfOperation({ name }: Principal, key: string): string {
  return `http-${sha256Hex(canonicalJson([name, key])).slice(0, ID_DIGITS)}`;
}

/** Returns the name of a run that may be started for a tenant: the same for the same operation. */
export async function nameFor(
  { client }: Pick<Place, 'client'>,
  {
    principal,
    operationKey,
  }: { readonly principal: Principal; readonly operationKey: string | null },
  {
    id,
    agent,
    tenant,
  }: {
    readonly id?: string | undefined;
    readonly agent: string;
    readonly tenant?: string | undefined;
  },
): Promise<RunName> {
  const prefix = tenantIdPrefix(client, tenant);
  const own = operationKey === null ? undefined : prefix + idOfOperation(principal, operationKey);
  return await nameRun(client, { id: id ?? own, agent, tenant });
}

/** A run that was started; `repeated`: the same request had already started it. */
interface Started {
  readonly id: string;
  readonly repeated: boolean;
}

/**
 * Starts a run with the memo of its principal, or finds the one that the same request has started.
 * `digest`: that of the request.
 */
export async function startOrFind(
  place: Place,
  principal: Principal,
  {
    id,
    givenId = id,
    digest,
    operationKey,
    start,
  }: RunName & {
    readonly digest: string;
    /** The key whose run this is; null if the request names the run itself. */
    readonly operationKey: string | null;
    readonly start: (memo: ReturnType<typeof startMemo>) => Promise<{ readonly id: string }>;
  },
): Promise<Started> {
  try {
    return { id: (await start(startMemo(principal, digest))).id, repeated: false };
  } catch (error) {
    if (!IdTakenError.isInstance(error)) throw error;
    const found = await openRun(place, { principal, right: 'read', run: id }).catch(unseen);
    if (found?.isOwn && found.request === digest) return { id, repeated: true };
    const taken =
      operationKey === null
        ? `id: expected a new id, got "${givenId}"`
        : `Idempotency-Key: expected a new key, got ${show(operationKey)}`;
    const by = found?.isOwn ? `started run ${givenId} for another request` : 'is in use';
    throw new IdTakenError(`${taken}, which ${by}; choose a new one`, { cause: error });
  }
}

/** Stores the images and files of a message, which a run then has to be given. */
export async function storeAttachments(
  { api }: Pick<Place, 'api'>,
  given: readonly AttachmentInput[] | undefined,
  tenant = '',
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  if (given === undefined) return {};
  const stored = given.map(async (one, at): Promise<Attachment> => {
    if ('url' in one) return { type: 'image', url: one.url };
    const { data, ...about } = one;
    const bytes = Buffer.from(data, 'base64');
    if (about.mediaType === undefined && detectMediaType(bytes) === null) {
      throw new InputError(
        `attachments[${at}].mediaType: missing, expected a media type, since the bytes do not tell; give for example "text/csv"`,
      );
    }
    return await api.attach(bytes, { ...about, ...(tenant !== '' && { tenant }) });
  });
  return { attachments: await Promise.all(stored) };
}

/** The same, for a run that is about to start with them. */
export async function attachToNew(
  place: Pick<Place, 'api' | 'blobs'>,
  run: string,
  given: readonly AttachmentInput[] | undefined,
  tenant: string | undefined,
): Promise<{ readonly attachments?: readonly Attachment[] }> {
  const stored = await storeAttachments(place, given, tenant);
  return { ...stored, ...(await claimAttachments(place.blobs, run, stored)) };
}

/** Starts a fork for a principal whose rights were checked. The same operation starts one. */
export async function forkFor(
  place: Place,
  {
    principal,
    operationKey,
    actor,
  }: {
    readonly principal: Principal;
    readonly operationKey: string | null;
    readonly actor: { readonly by: string; readonly door?: string };
  },
  {
    source,
    agent,
    tenant,
    id: given,
    attachments,
    ...fields
  }: Omit<ForkOptions<unknown>, 'attachments' | 'agent' | 'tenant'> & {
    readonly source: string;
    readonly agent: string;
    /** That of the other run; empty without one. */
    readonly tenant: string;
    readonly attachments?: readonly AttachmentInput[];
  },
): Promise<Started> {
  const { client, agents, blobs, archive } = place;
  const config = agents.length === 0 ? undefined : { agents };
  const about = { id: given, agent, ...(tenant !== '' && { tenant }) };
  const name = await nameFor(place, { principal, operationKey }, about);
  const content = [source, agent, JSON.stringify(fields), JSON.stringify(attachments ?? [])];
  const digest = sha256Hex(canonicalJson(content));
  const stored = await storeAttachments(place, attachments, tenant);
  return await startOrFind(place, principal, {
    ...name,
    digest,
    operationKey: given === undefined ? operationKey : null,
    start: (memo) =>
      forkRun(
        client,
        source,
        { ...fields, ...stored, ...actor, agent, id: name.givenId ?? name.id },
        { blobs, archive, config, memo },
      ).catch((error: unknown) => {
        // The fields of a fork are those of the request.
        if (!InputError.isInstance(error)) throw error;
        throw new InputError(error.message.replace(/^fork\./, ''), { cause: error });
      }),
  });
}
