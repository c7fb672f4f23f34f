import { callModel } from './call-model.js';
import type { Activities } from './contract.js';
import type { ActivityDependencies } from './dependencies.js';
import { loadAgent } from './load-agent.js';
import { runFunction } from './run-function.js';
import { runTool } from './run-tool.js';

export function createActivities(deps: ActivityDependencies): Activities {
  return {
    loadAgent: (input) => loadAgent(deps, input),
    callModel: (input) => callModel(deps, input),
    runTool: (input) => runTool(deps, input),
    runFunction: (input) => runFunction(deps, input),
  };
}
