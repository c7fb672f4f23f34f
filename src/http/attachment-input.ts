import { z } from 'zod';

const text = z.string().min(1).max(1_000);

/** An image or a file of a message, as a request has it. */
export const attachmentInput = z.union([
  z.strictObject({
    data: z.base64().min(4).describe('the bytes as base64; the body of a request is limited'),
    mediaType: text.exactOptional().describe('needed only if it cannot be detected'),
    name: text.exactOptional().describe('the file name that the model sees'),
  }),
  z.strictObject({ url: z.url().max(8_000).describe('an image, fetched by the provider') }),
]);

export type AttachmentInput = z.output<typeof attachmentInput>;
