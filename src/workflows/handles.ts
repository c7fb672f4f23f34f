import { defineQuery, defineUpdate } from '@temporalio/workflow';
import type { AgentDefinition } from '../core/definition.js';
import type { Json } from '../core/json.js';
import type { Pending, RunStatus, TranscriptPage } from '../core/status.js';

export interface TranscriptRange {
  /** First message wanted, from 0. */
  readonly from?: number;
  /** First message not wanted any more. */
  readonly to?: number;
}

export interface Resolution {
  /** The id of the call whose outcome is unknown. */
  readonly call: string;
  /** It happened (with `result`) · it did not, try again · give up. */
  readonly as: 'happened' | 'retry' | 'abandon';
  readonly result?: Json;
}

export const statusQuery = defineQuery<RunStatus>('status');
export const transcriptQuery = defineQuery<TranscriptPage, [TranscriptRange?]>('transcript');
export const pendingQuery = defineQuery<readonly Pending[]>('pending');
export const definitionQuery = defineQuery<AgentDefinition>('definition');

/** Settles a call whose outcome is unknown. */
export const resolveUpdate = defineUpdate<{ readonly resolved: string }, [Resolution]>('resolve');
/** Lets a blocked run try again at once. */
export const resumeUpdate = defineUpdate<{ readonly resumed: true }>('resume');
