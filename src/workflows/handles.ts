import { defineQuery, defineUpdate } from '@temporalio/workflow';
import type { AgentDefinition } from '../core/definition.js';
import type { Resolution } from '../core/call-results.js';
import type { Pending, RunStatus, TranscriptPage } from '../core/status.js';

export interface TranscriptRange {
  /** First message wanted, from 0. */
  readonly from?: number;
  /** First message not wanted any more. */
  readonly to?: number;
}

export const statusQuery = defineQuery<RunStatus>('status');
export const transcriptQuery = defineQuery<TranscriptPage, [TranscriptRange?]>('transcript');
export const pendingQuery = defineQuery<readonly Pending[]>('pending');
export const definitionQuery = defineQuery<AgentDefinition>('definition');

/** Settles a call whose outcome is unknown. */
export const resolveUpdate = defineUpdate<{ readonly resolved: string }, [Resolution]>('resolve');
/** Lets a blocked run try again at once. */
export const resumeUpdate = defineUpdate<{ readonly resumed: true }>('resume');
