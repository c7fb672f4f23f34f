// Each export of this file is a workflow type. The names are recorded in histories: never rename
// them.
export { agent } from './agent.js';
export { budget } from './shared-limits.js';
export { rate } from './shared-limits.js';
export { probe, send } from './send.js';
