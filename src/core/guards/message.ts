import type { SuppliedMessage } from '../input/supplied-messages.js';
import { isObject } from '../json.js';
import type {
  RunArtifact,
  CreatedArtifact,
  RequestedCall,
  AssistantMessage,
  Attachment,
  BlobRef,
  CallProblem,
  ParsedArguments,
  Message,
  ProviderItems,
  SafetyCheck,
  ToolCall,
  ToolMessage,
  UserMessage,
} from '../transcript/messages.js';
import { verdictShape } from './requests.js';
import {
  count,
  fields,
  flag,
  hex,
  jsonObject,
  list,
  amount,
  oneOf,
  optional,
  tagged,
  text,
  yes,
  type Shape,
} from './shape.js';

export const blobShape = fields<BlobRef>({ sha256: hex(64), bytes: count });

const stored = fields<Extract<Attachment, { blob: BlobRef }>>({
  type: oneOf('image', 'file'),
  blob: blobShape,
  mediaType: text,
  name: optional(text),
});
const linked = fields<Extract<Attachment, { url: string }>>({ type: oneOf('image'), url: text });
export const attachmentShape: Shape<Attachment> = (value, at) =>
  isObject(value) && 'url' in value ? linked(value, at) : stored(value, at);

export const safetyShape = fields<SafetyCheck>({
  id: text,
  code: optional(text),
  message: optional(text),
});

export const parsedShape = fields<ParsedArguments>({
  arguments: text,
  digest: text,
  blob: optional(blobShape),
});

const requestedFields = {
  name: text,
  arguments: text,
  digest: text,
  blob: optional(blobShape),
  parsed: optional(parsedShape),
  problem: optional(
    fields<CallProblem>({
      type: oneOf('unknown_tool', 'invalid_json', 'invalid_arguments', 'truncated'),
      message: text,
    }),
  ),
  summary: optional(text),
  safety: optional(list(safetyShape)),
  verdict: optional(verdictShape),
  via: optional(oneOf('catalog')),
};
export const requestedCallShape = fields<RequestedCall>(requestedFields);
const placeKey: Shape<string | number> = (value, at) =>
  typeof value === 'string' || typeof value === 'number'
    ? null
    : `${at}: expected a name or an index`;
export const callShape = fields<ToolCall>({
  ...requestedFields,
  id: text,
  edited: optional(yes),
  node: optional(text),
  after: optional(list(text)),
  refs: optional(list(list(placeKey))),
  asks: optional(yes),
  confirmed: optional(yes),
  asShown: optional(yes),
});

export const providerShape = fields<ProviderItems>({
  from: text,
  items: optional(list(jsonObject)),
  blob: optional(blobShape),
});

const placed = { n: count, turn: count, step: count, at: amount };

export const refusedShape = oneOf('message', 'attachments');

export const messageShape = tagged<Message, 'role'>('role', {
  user: fields<UserMessage>({
    ...placed,
    role: oneOf('user'),
    text,
    attachments: optional(list(attachmentShape)),
    origin: optional(oneOf('perdure', 'retrieved', 'graph')),
    node: optional(text),
    document: optional(
      fields<NonNullable<UserMessage['document']>>({ id: optional(text), source: optional(text) }),
    ),
    blob: optional(blobShape),
    id: optional(text),
    by: optional(text),
    pinned: optional(yes),
    side: optional(yes),
    refused: optional(refusedShape),
    compacts: optional(fields<{ from: number; to: number }>({ from: count, to: count })),
  }),
  assistant: fields<AssistantMessage>({
    ...placed,
    role: oneOf('assistant'),
    text,
    side: optional(yes),
    supplied: optional(yes),
    origin: optional(oneOf('graph')),
    node: optional(text),
    refuses: optional(fields<{ from: number; to: number }>({ from: count, to: count })),
    refused: optional(refusedShape),
    blob: optional(blobShape),
    calls: optional(list(callShape)),
    provider: optional(providerShape),
  }),
  tool: fields<ToolMessage>({
    ...placed,
    role: oneOf('tool'),
    text,
    blob: optional(blobShape),
    callId: text,
    ok: optional(flag),
    attachments: optional(list(attachmentShape)),
    acknowledged: optional(yes),
    refused: optional(refusedShape),
    grant: optional(text),
  }),
});

export const saidShape = fields<SuppliedMessage>({ role: oneOf('user', 'assistant'), text });

const made = {
  name: text,
  blob: blobShape,
  kind: text,
  text: optional(yes),
  summary: optional(text),
};
export const createdArtifactShape = fields<CreatedArtifact>(made);
export const artifactShape = fields<RunArtifact>({
  ...made,
  base: optional(text),
  announcedBy: optional(count),
  tool: text,
  call: text,
});
