// The worker loads this file once per V8 context, before it freezes the context, and all workflows
// share it. Runs therefore neither load these modules nor hold copies of them. The modules have no
// state.
// oxlint-disable-next-line import/no-unassigned-import -- imported only to be loaded
import './agent.js';

// Temporal's SDK captures a stack trace for every promise in a workflow, which is a third of the
// cost of a replay. Without stack traces, an exception in the workflow is recorded by its message.
Object.assign(Error, { stackTraceLimit: 0 });
