// Every export of this file becomes a workflow type; their names are for ever.
export { agent } from './agent.js';
export { probe } from './probe.js';
export { send } from './send.js';
