import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';

const ENCODING = 'binary/encrypted';

/** A codec like those of Temporal's samples: AES-256-GCM, with the key's id in the metadata. */
export function encryptingCodec(keyId: string, key: Uint8Array): PayloadCodec {
  return {
    encode: async (payloads) =>
      payloads.map((payload) => {
        const iv = randomBytes(12);
        const cipher = createCipheriv('aes-256-gcm', key, iv);
        const body = Buffer.concat([cipher.update(toText(payload)), cipher.final()]);
        return {
          metadata: { encoding: Buffer.from(ENCODING), 'encryption-key-id': Buffer.from(keyId) },
          data: Buffer.concat([iv, cipher.getAuthTag(), body]),
        };
      }),
    decode: async (payloads) =>
      payloads.map((payload) => {
        if (text(payload.metadata?.['encoding']) !== ENCODING) return payload;
        const id = text(payload.metadata?.['encryption-key-id']);
        if (id !== keyId) throw new Error(`no key ${id}`);
        const bytes = Buffer.from(payload.data ?? []);
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12));
        decipher.setAuthTag(bytes.subarray(12, 28));
        return toPayload(
          Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString(),
        );
      }),
  };
}

function text(bytes: Uint8Array | null | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

function toText({ metadata, data }: Payload): string {
  const fields = Object.entries(metadata ?? {}).map(([name, value]) => [name, text(value)]);
  return JSON.stringify({ fields, data: Buffer.from(data ?? []).toString('base64') });
}

function toPayload(json: string): Payload {
  const { fields, data } = JSON.parse(json) as { fields: [string, string][]; data: string };
  return {
    metadata: Object.fromEntries(fields.map(([name, value]) => [name, Buffer.from(value)])),
    data: Buffer.from(data, 'base64'),
  };
}
