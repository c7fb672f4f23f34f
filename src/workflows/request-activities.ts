import { proxyActivities } from '@temporalio/workflow';
import type { Activities } from '../core/contract.js';
import { HEARTBEAT_MS } from '../core/state.js';

/** Checks a person's decision. It is repeated while its worker is lost; the request stays open meanwhile. */
export const { checkDecision } = proxyActivities<Pick<Activities, 'checkDecision'>>({
  summary: 'check decision',
  startToCloseTimeout: 60_000,
  scheduleToCloseTimeout: 10 * 60_000,
  heartbeatTimeout: HEARTBEAT_MS,
  retry: { initialInterval: 500, backoffCoefficient: 2, maximumInterval: 30_000 },
});

/** Tells somebody about a request, for a day at most. */
export const { notifyRequest } = proxyActivities<Pick<Activities, 'notifyRequest'>>({
  summary: 'notify',
  startToCloseTimeout: 30_000,
  scheduleToCloseTimeout: 24 * 60 * 60_000,
  retry: { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 10 * 60_000 },
});
