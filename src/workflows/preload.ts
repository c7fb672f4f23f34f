// The worker loads this file once per V8 context, before it freezes the context, and all workflows
// share it. So a run pays neither for loading these modules nor for keeping them. They hold no state.
// oxlint-disable-next-line import/no-unassigned-import -- imported only to be loaded
import './agent.js';

// Temporal's SDK takes a stack trace of every promise that a workflow makes, which is a third of the
// cost of a replay. Without stack traces, an exception in the workflow is recorded by its message.
Object.assign(Error, { stackTraceLimit: 0 });
