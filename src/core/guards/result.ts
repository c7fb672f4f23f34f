import type { CallResult } from '../calls/call-result.js';
import { createdArtifactShape, attachmentShape, blobShape } from './message.js';
import { usageShape } from './outcome.js';
import { amount, fields, flag, json, list, oneOf, optional, text, yes } from './shape.js';

export const resultShape = fields<CallResult>({
  id: text,
  ok: flag,
  text,
  blob: optional(blobShape),
  output: optional(json),
  artifact: optional(createdArtifactShape),
  artifactName: optional(text),
  attachments: optional(list(attachmentShape)),
  acknowledged: optional(yes),
  denied: optional(yes),
  note: optional(text),
  patched: optional(yes),
  expired: optional(yes),
  grant: optional(text),
  executed: flag,
  usage: optional(usageShape),
  at: optional(amount),
  limit: optional(oneOf('tokens', 'costUsd')),
});
