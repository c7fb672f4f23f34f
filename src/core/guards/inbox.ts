import type { Inbox, Incoming, RefusedMessage } from '../inbox.js';
import type { AttachedArtifact } from '../input/attached-artifacts.js';
import type { TurnContext } from '../input/turn-context.js';
import { attachmentShape, blobShape, saidShape } from './message.js';
import {
  amount,
  count,
  fields,
  json,
  jsonObject,
  list,
  nullable,
  optional,
  shape,
  text,
  yes,
} from './shape.js';

const attachedArtifact = fields<AttachedArtifact>({
  name: text,
  blob: blobShape,
  kind: text,
  text: optional(yes),
  head: text,
});
export const turnContextShape = fields<TurnContext>({ value: json, replace: optional(yes) });

/** A message's id and its turn. */
const seen = shape<readonly [string, number]>(
  'an id and a turn',
  (value) =>
    Array.isArray(value) &&
    value.length === 2 &&
    typeof value[0] === 'string' &&
    Number.isSafeInteger(value[1]),
);
export const inboxShape = fields<Inbox>({
  waiting: list(
    fields<Incoming>({
      id: text,
      text,
      attachments: optional(list(attachmentShape)),
      turn: count,
      pinned: optional(yes),
      refresh: optional(yes),
      by: optional(text),
      requesters: optional(list(text)),
      input: optional(jsonObject),
      messages: optional(list(saidShape)),
      prompt: optional(text),
      args: optional(jsonObject),
      artifacts: optional(list(attachedArtifact)),
      context: optional(turnContextShape),
      settings: optional(jsonObject),
    }),
  ),
  seen: list(seen),
  lastTurn: count,
  count: optional(count),
  refused: optional(list(fields<RefusedMessage>({ id: nullable(text), reason: text, at: amount }))),
  refusedTotal: optional(count),
});
