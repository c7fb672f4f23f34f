import { BLOCKED_REASONS } from '../blocked.js';
import type { Block, Proposal, Work } from '../work/work.js';
import { decisionShape, raisedShape } from './requests.js';
import { reportShape } from './outcome.js';
import {
  amount,
  count,
  fields,
  json,
  list,
  oneOf,
  optional,
  tagged,
  text,
  yes,
  type FieldShapes,
} from './shape.js';

const block = fields<Block>({
  reason: oneOf(...BLOCKED_REASONS),
  message: text,
  reports: optional(list(reportShape)),
  definition: optional(text),
  blob: optional(text),
  until: amount,
});

type WorkIn<P extends Work['phase']> = Extract<Work, { phase: P }>;

const common: Omit<FieldShapes<WorkIn<'waiting'>>, 'phase'> = {
  name: text,
  block: optional(block),
  probeMs: optional(amount),
  checked: optional(list(text)),
  resumed: optional(yes),
  found: optional(yes),
  paid: optional(json),
  starts: optional(count),
  startAt: optional(amount),
  unknown: optional(text),
  key: optional(text),
  request: optional(raisedShape),
  proposal: optional(fields<Proposal>({ id: text, decision: decisionShape, at: amount })),
  approved: optional(yes),
  grant: optional(text),
  retried: optional(yes),
  again: optional(yes),
  child: optional(text),
  missing: optional(text),
  slow: optional(yes),
  last: optional(yes),
  cut: optional(count),
};

export const workShape = tagged<Work, 'phase'>('phase', {
  'in-flight': fields<WorkIn<'in-flight'>>({
    ...common,
    phase: oneOf('in-flight'),
    as: oneOf('attempt', 'probe', 'find', 'check', 'verify', 'child', 'follow', 'decide'),
  }),
  waiting: fields<WorkIn<'waiting'>>({ ...common, phase: oneOf('waiting') }),
  asking: fields<WorkIn<'asking'>>({ ...common, phase: oneOf('asking') }),
});
