// Loaded once per V8 context, before it is frozen, and shared by all workflows in it: so a run pays
// neither for loading these modules nor for keeping them. They hold no state.
// oxlint-disable-next-line import/no-unassigned-import -- being loaded is the point
import './agent.js';

// Temporal's SDK takes a stack trace of every promise that a workflow makes; that is a third of what
// replay costs. A fault in here is recorded by its message.
Object.assign(Error, { stackTraceLimit: 0 });
