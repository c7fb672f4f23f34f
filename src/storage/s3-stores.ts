import { withoutTail } from '../core/text/text.js';
import { hostname } from 'node:os';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import { InputError } from '../core/errors.js';
import { z } from 'zod';
import { checkOptions, expectedHidden, type OptionSchemas } from '../validation/check-options.js';
import {
  archiveIn,
  blobsIn,
  type ObjectStore,
  type StoredObject,
  type Stores,
  toolLockIn,
} from './tool-lock.js';
import { TimeoutError, within } from './blob-store.js';

/** The location of texts and archive in S3-compatible storage. */
export interface S3Options {
  readonly bucket: string;
  /** The prefix of all object names, without a trailing `/`; default: empty. */
  readonly prefix?: string;
  /** Default: AWS_REGION, or the region of the AWS profile. */
  readonly region?: string;
  /**
   * The address of storage other than Amazon's; default: AWS_ENDPOINT_URL_S3, or AWS_ENDPOINT_URL.
   */
  readonly endpoint?: string;
  /**
   * Whether the bucket is part of the path instead of the host, as most other services require.
   * Default: true with an endpoint.
   */
  readonly pathStyle?: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

const CONNECT_MS = 5_000;
/**
 * The time limit for a request. After it, the request is aborted, and its socket is free for
 * another one.
 */
const REQUEST_MS = 30_000;
/**
 * Large bodies get one more second for each of these, the throughput of a link with one megabit per
 * second.
 */
const BYTES_PER_SECOND = 128 * 1024;

const s3Options = z.strictObject({
  // Hidden, because keys are often written into the address of a bucket.
  bucket: expectedHidden(
    '3 to 63 lowercase letters, digits, "." and "-"',
    (value) => typeof value === 'string' && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(value),
  ),
  prefix: z
    .string()
    .regex(/^(?!\/)(?!.*\/$)/s, 'expected no "/" at its ends')
    .optional(),
  region: z.string().optional(),
  endpoint: z.string().optional(),
  pathStyle: z.boolean().optional(),
} satisfies OptionSchemas<S3Options>);

/** How long a request with a small body may take, in milliseconds. */
interface Limit {
  readonly requestMs: number;
}

/**
 * Makes the stores of workers and clients in S3-compatible storage: blobs below `blobs/`, each
 * history of the archive as one object below `archive/`, and the accepted forms of MCP tools below
 * `mcp-lock/`. The keys come from the process, as AWS's
 * SDK finds them. The SDK is loaded with the first request and must be installed
 * (`@aws-sdk/client-s3`). Throws an `InputError` for an invalid option.
 *
 * @example
 * ```ts
 * import { createClient, createWorker, defineConfig } from 'perdure';
 * import { s3Stores } from 'perdure/worker';
 *
 * const stores = s3Stores({ bucket: 'agents', prefix: 'production', region: 'eu-central-1' });
 * await createWorker({ config: defineConfig({ agents: [] }), ...stores });
 * await using client = await createClient(stores);
 * ```
 */
export function s3Stores(options: S3Options): Required<Stores> {
  checkOptions('s3Stores', { schema: s3Options, options });
  return storesOf(options, process.env, { requestMs: REQUEST_MS });
}

/**
 * Returns the stores that PERDURE_STORE specifies: `s3://bucket/prefix`. Throws an `InputError` for
 * any other value.
 */
export function storesAt(
  address: string,
  env: Environment,
  limit: Limit = { requestMs: REQUEST_MS },
): Required<Stores> {
  const [, bucket, prefix = ''] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(address) ?? [];
  if (bucket === undefined) {
    throw new InputError(
      'PERDURE_STORE: expected s3://BUCKET or s3://BUCKET/PREFIX; omit it for files in PERDURE_HOME',
    );
  }
  const options = { bucket, prefix: withoutTail(prefix, /\//) };
  checkOptions('PERDURE_STORE', { schema: s3Options, options });
  return storesOf(options, env, limit);
}

function storesOf(options: S3Options, env: Environment, { requestMs }: Limit): Required<Stores> {
  const { bucket, prefix = '' } = options;
  const client = once(async () => await openClient(options, env));
  const below = (folder: string): ObjectStore => {
    const place = { bucket, folder: prefix === '' ? folder : `${prefix}/${folder}`, requestMs };
    return objectsIn(place, client);
  };
  return {
    blobs: blobsIn(below('blobs')),
    archive: archiveIn(below('archive')),
    toolLock: toolLockIn(below('mcp-lock')),
  };
}

/** How services answer that an object exists, or that another request writes it. */
const TAKEN = ['PreconditionFailed', 'ConditionalRequestConflict'];

interface Place extends Limit {
  readonly bucket: string;
  readonly folder: string;
}

function objectsIn(
  { bucket, folder, requestMs }: Place,
  client: () => Promise<S3Client>,
): ObjectStore {
  const Bucket = bucket;
  const keyOf = (name: string): string => `${folder}/${name}`;
  const send = async (name: string, bytes: Buffer, isNew: boolean): Promise<void> => {
    const { PutObjectCommand } = await loadSdk();
    const s3 = await client();
    const condition = isNew ? { IfNoneMatch: '*' } : {};
    const command = new PutObjectCommand({ Bucket, Key: keyOf(name), Body: bytes, ...condition });
    const limitMs = requestMs + bodyMs(bytes.length);
    await within(limitMs, (abortSignal) => s3.send(command, { abortSignal }));
  };
  return {
    place: `s3://${bucket}/${folder}`,
    put: (name, bytes) => send(name, bytes, false).catch(rethrowWithFix),
    async create(name, bytes) {
      // Some services ignore the condition.
      if ((await this.get(name)) !== null) return false;
      try {
        await send(name, bytes, true);
        return true;
      } catch (error) {
        const code = error instanceof Error ? error.name : '';
        if (TAKEN.includes(code)) return false;
        if (code !== 'NotImplemented') return rethrowWithFix(error);
      }
      await this.put(name, bytes);
      return true;
    },
    async get(name) {
      const { GetObjectCommand } = await loadSdk();
      const s3 = await client();
      const command = new GetObjectCommand({ Bucket, Key: keyOf(name) });
      try {
        const found = await within(requestMs, (abortSignal) => s3.send(command, { abortSignal }));
        const { Body: body, ContentLength: size = 0 } = found;
        if (body === undefined) return null;
        return await within(requestMs + bodyMs(size), async (signal) => {
          signal.addEventListener('abort', () => body instanceof Readable && body.destroy());
          return Buffer.from(await body.transformToByteArray());
        });
      } catch (error) {
        if (error instanceof Error && error.name === 'NoSuchKey') return null;
        return rethrowWithFix(error);
      }
    },
    async list(below) {
      const start = below.length + 1;
      return (await this.entries(below)).map(({ name }) => name.slice(start));
    },
    async entries(below) {
      const root = keyOf('');
      const place = { Bucket, Prefix: below === '' ? root : keyOf(`${below}/`), requestMs };
      const found = await listObjects(await client(), place).catch(rethrowWithFix);
      return found.map(({ name, at }) => ({ name: name.slice(root.length), at }));
    },
    async remove(name, before) {
      const place = { Bucket, Key: keyOf(name), requestMs };
      return await removeObject(await client(), place, before).catch((error: unknown) => {
        const isAbsent = error instanceof Error && /^(NotFound|NoSuchKey)$/.test(error.name);
        return isAbsent || rethrowWithFix(error);
      });
    },
  };
}

/** Returns the objects whose keys begin with a prefix, by their keys. */
async function listObjects(
  s3: S3Client,
  { requestMs, ...prefix }: Limit & { readonly Bucket: string; readonly Prefix: string },
): Promise<readonly StoredObject[]> {
  const { ListObjectsV2Command } = await loadSdk();
  const found: StoredObject[] = [];
  let after: string | undefined;
  do {
    const command = new ListObjectsV2Command({ ...prefix, ContinuationToken: after });
    const page = await within(requestMs, (abortSignal) => s3.send(command, { abortSignal }));
    for (const { Key: name, LastModified: at } of page.Contents ?? [])
      if (name) found.push({ name, at: at?.getTime() ?? Date.now() });
    after = page.NextContinuationToken;
  } while (after !== undefined);
  return found;
}

/** Returns false if the object was stored at `before` or later. */
async function removeObject(
  s3: S3Client,
  { requestMs, ...object }: Limit & { readonly Bucket: string; readonly Key: string },
  before: number,
): Promise<boolean> {
  const { DeleteObjectCommand, HeadObjectCommand } = await loadSdk();
  if (Number.isFinite(before)) {
    const head = new HeadObjectCommand(object);
    const { LastModified: at } = await within(requestMs, (abortSignal) =>
      s3.send(head, { abortSignal }),
    );
    if ((at?.getTime() ?? before) >= before) return false;
  }
  const remove = new DeleteObjectCommand(object);
  await within(requestMs, (abortSignal) => s3.send(remove, { abortSignal }));
  return true;
}

/** Returns the additional time for a body, in milliseconds. */
function bodyMs(bytes: number): number {
  return Math.floor(bytes / BYTES_PER_SECOND) * 1_000;
}

async function openClient(
  { region, endpoint, pathStyle }: S3Options,
  env: Environment,
): Promise<S3Client> {
  const { S3Client: Client } = await loadSdk();
  const address = endpoint ?? env['AWS_ENDPOINT_URL_S3'] ?? env['AWS_ENDPOINT_URL'];
  const place = region ?? env['AWS_REGION'];
  return new Client({
    ...(address !== undefined && { endpoint: address }),
    ...(place !== undefined && { region: place }),
    forcePathStyle: pathStyle ?? address !== undefined,
    // Temporal retries.
    maxAttempts: 1,
    requestHandler: { connectionTimeout: CONNECT_MS },
    // Other services do not support the checksums that the SDK adds by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
}

const loadSdk = once(async () => {
  try {
    return await import('@aws-sdk/client-s3');
  } catch (cause) {
    throw new Error("AWS's SDK cannot be loaded; install it: npm install @aws-sdk/client-s3", {
      cause,
    });
  }
});

/** Calls `make` once and caches its result; a failure is retried at the next call. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return async () => {
    made ??= make();
    try {
      return await made;
    } catch (error) {
      made = undefined;
      throw error;
    }
  };
}

/** Whoever reads the error may not have the environment of the worker. */
const HERE = `in the environment of process ${process.pid}@${hostname()}`;

const FIXES: Readonly<Record<string, string>> = {
  NoSuchBucket: 'create the bucket, or correct its name',
  AccessDenied:
    'give the keys of the process the rights to get, put, and list the objects, and for `erase` to delete them',
  InvalidAccessKeyId: `set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to keys of this storage ${HERE}`,
  SignatureDoesNotMatch: `set AWS_SECRET_ACCESS_KEY to the secret of the key ${HERE}`,
  CredentialsProviderError: `set keys ${HERE}, for example by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
};

function rethrowWithFix(cause: unknown): never {
  if (cause instanceof TimeoutError) throw cause;
  const { name, message } = cause instanceof Error ? cause : { name: '', message: String(cause) };
  const fix = FIXES[name] ?? 'check that the storage can be reached, and its address and region';
  throw new Error(`${message === '' ? name : message}; ${fix}`, { cause });
}
