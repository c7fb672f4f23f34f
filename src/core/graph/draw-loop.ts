import type { AgentDefinition, OnLimit } from '../definition/definition.js';
import type { ToolDefinition } from '../definition/tool-definition.js';
import { END_NODE } from './draw.js';
import { END_ID, START_ID, type Drawing, type DrawnEdge, type DrawnNode } from './drawing.js';

/** What the loop of an agent depends on. */
export type LoopParts = Pick<
  AgentDefinition,
  'model' | 'tools' | 'onLimit' | 'decide' | 'output' | 'onPlainText'
>;

const DECIDE_ID = 'n0';
const CLOSING_ID = 'closing';

/**
 * Returns the drawing of the loop that perdure runs for an agent without a graph: the model
 * decides, tools are executed, and a text is the answer.
 */
export function drawLoop(agent: LoopParts): Drawing {
  const closing = closingNode(agent.onLimit);
  const tools = agent.tools.map((tool, index) => ({ tool, node: toolNode(tool, `n${index + 1}`) }));
  return {
    nodes: [
      { id: START_ID, name: 'start', label: 'start', kind: 'start', about: '' },
      { id: DECIDE_ID, name: 'decide', label: 'decide', kind: 'decide', about: aboutDecide(agent) },
      ...tools.map(({ node }) => node),
      ...(closing === null ? [] : [closing]),
      END_NODE,
    ],
    edges: [
      { from: START_ID, to: DECIDE_ID, exit: null },
      ...tools.flatMap(({ tool, node }) => toolEdges(tool, node)),
      ...textEdges(agent),
      ...limitEdges(agent.onLimit, closing),
    ],
  };
}

function aboutDecide({ decide, model }: LoopParts): string {
  if (decide === 'function') return 'own function';
  const name = model === '' ? 'model' : `model ${model}`;
  return decide === 'schema' ? `${name}, by schema` : name;
}

function toolNode({ name, kind, calls }: ToolDefinition, id: string): DrawnNode {
  const base = { id, name, label: name };
  if (kind === 'agent') return { ...base, kind: 'agent', about: `agent ${calls?.agent ?? name}` };
  if (kind === 'question') return { ...base, kind: 'confirm', about: 'a person answers' };
  if (kind === 'client') return { ...base, kind: 'confirm', about: 'the caller executes it' };
  return { ...base, kind: 'tool', about: 'tool' };
}

function toolEdges(tool: ToolDefinition, { id }: DrawnNode): readonly DrawnEdge[] {
  const called: DrawnEdge = { from: DECIDE_ID, to: id, exit: tool.name };
  if (tool.ends !== true) return [called, { from: id, to: DECIDE_ID, exit: null }];
  return [
    called,
    { from: id, to: END_ID, exit: 'done' },
    { from: id, to: DECIDE_ID, exit: 'failed' },
  ];
}

function textEdges({ tools, output, onPlainText }: LoopParts): readonly DrawnEdge[] {
  const fails = onPlainText === 'fail' && tools.length > 0;
  const text: DrawnEdge = {
    from: DECIDE_ID,
    to: END_ID,
    exit: fails ? 'text, the turn fails' : 'text',
  };
  if (output === undefined || fails) return [text];
  return [text, { from: DECIDE_ID, to: DECIDE_ID, exit: 'invalid answer' }];
}

function closingNode(onLimit: OnLimit): DrawnNode | null {
  const base = { id: CLOSING_ID, name: 'closing' };
  switch (onLimit) {
    case 'answer':
      return { ...base, label: 'closing answer', kind: 'decide', about: 'without tools' };
    case 'compose':
      return { ...base, label: 'closing answer', kind: 'run', about: 'from the results so far' };
    case 'ask':
      return { ...base, label: 'raise the limit?', kind: 'confirm', about: 'a person decides' };
    case 'fail':
      return null;
  }
}

function limitEdges(onLimit: OnLimit, closing: DrawnNode | null): readonly DrawnEdge[] {
  if (closing === null) {
    return [{ from: DECIDE_ID, to: END_ID, exit: 'limit, the turn fails' }];
  }
  const { id } = closing;
  const limit: DrawnEdge = { from: DECIDE_ID, to: id, exit: 'limit' };
  if (onLimit !== 'ask') return [limit, { from: id, to: END_ID, exit: null }];
  return [
    limit,
    { from: id, to: DECIDE_ID, exit: 'raise' },
    { from: id, to: END_ID, exit: 'stop, closing answer' },
  ];
}
