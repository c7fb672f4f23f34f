import { answerContract, type AgentOutput, type AnswerContract } from './agent-output.js';
import type { DecideFunction } from './decide-function.js';
import { settingsOf } from './settings-of.js';
import type { Template } from '../prompts/template.js';
import type {
  Compaction,
  Limits,
  OnInvalid,
  OnLimit,
  ParentClose,
  Settings,
  ToolCalls,
  ToolChoice,
} from '../core/definition/definition.js';
import { checkLimits } from '../core/input/input.js';
import type { Json } from '../core/json.js';
import { calledAgents } from './called-agents.js';
import { forkFromOf, isAgentName } from './fork-from.js';
import { refuseCatalog } from './catalog-entry.js';
import { mcpServersOf } from './mcp-servers-of.js';
import { compactionOf } from './compaction-of.js';
import {
  retrieverOf,
  type RetrieveFunction,
  type RetrieveOptions,
  type Retriever,
} from './retriever.js';
import type { McpServer } from '../mcp/mcp-server.js';
import type { ToolRegistry } from '../tools/registry.js';
import { registryOf } from './registry-of.js';
import type { Tool } from '../tools/tool.js';
import type { Typed } from '../core/definition/output-type.js';

/** What an author writes. */
export interface AgentOptions<Output = Json> {
  /** Letters, digits, `_`, `-` and `.`, at most 64 characters; unique on a worker. */
  readonly name: string;
  /** The system message; as a template, each run gives its arguments. */
  readonly instructions: string | Template;
  /** An entry of `models` in the config, else a name for the OpenAI adapter; absent: PERDURE_MODEL. */
  readonly model?: string;
  readonly tools?: readonly Tool[];
  /** MCP servers whose tools the agent gets, as `mcpServer` made them. */
  readonly mcp?: readonly McpServer[];
  /** Agents that this one may call like tools; each call is a run of its own. */
  readonly agents?: readonly (Agent | CalledAgent)[];
  /**
   * Names of agents whose runs a run of this one may begin with (`fork`), beside its own. Its model then
   * reads what was said in them, so name only agents whose runs may be read by whoever runs this one.
   */
  readonly forkFrom?: readonly string[];
  /** For other agents: what this one does and when to call it. */
  readonly description?: string;
  /** Default `auto`. */
  readonly toolChoice?: ToolChoice;
  /** What to do with several calls in one message; default `parallel`, at most 5 at once. */
  readonly toolCalls?: ToolCalls;
  /** Per turn, and in `run` for the whole run; default 50 steps and 200 calls per turn. */
  readonly limits?: Limits;
  /** How a turn ends at a limit; default `answer`. */
  readonly onLimit?: OnLimit;
  readonly settings?: Settings;
  /** What an answer has to be; what does not keep to it goes back to the model, with the reason. */
  readonly output?: AgentOutput<Output>;
  /** Answers in all that a turn may give until one keeps to `output`; default 10. */
  readonly attempts?: number;
  /** How a turn ends when none did: without output (default), or with the last as it is. */
  readonly onInvalid?: OnInvalid;
  /**
   * How the next step is decided: by native tool calls (default), by JSON under a schema, for models
   * and servers without those, or by a function of yours in place of a model.
   */
  readonly decide?: 'tools' | 'schema' | DecideFunction;
  /** What text without a call is, where the agent has tools: the answer (default), or a failure. */
  readonly onPlainText?: 'respond' | 'fail';
  /**
   * What the model is shown of the tools: all schemas (default), or in place of them three tools with
   * which it finds the others, reads their schemas and calls them. Worth it from about ten tools on.
   */
  readonly toolExposure?: 'all' | 'catalog';
  /**
   * Finds documents for each turn, which the model reads as messages behind what was asked. A function of
   * the worker: `({ query, messages, limit }, { context, signal, run, log }) => [text, …]`.
   */
  readonly retrieve?: RetrieveFunction | RetrieveOptions;
  /** When a long conversation is summarized; shares of the model's window, default 0.75 and 0.25. */
  readonly compaction?: Partial<Compaction> | false;
}

/** An agent as a tool of another, with what is particular to that. */
export interface CalledAgent {
  readonly agent: Agent;
  /** The tool's name; default: the agent's, with `_` for dots. */
  readonly as?: string;
  /** Default: the agent's own. */
  readonly description?: string;
  /** What becomes of the called run when its caller ends first; default `request_cancel`. */
  readonly parentClose?: ParentClose;
}

/** An agent as `defineAgent` made it: checked, defaults filled in. */
export interface Agent<Output = unknown> extends Typed<Output> {
  readonly name: string;
  readonly instructions: string;
  /** Where the instructions are a template; they are then its text. */
  readonly template: Template | null;
  readonly answer: AnswerContract | null;
  readonly attempts: number | null;
  readonly onInvalid: OnInvalid;
  readonly decide: 'tools' | 'schema' | DecideFunction;
  readonly onPlainText: 'respond' | 'fail';
  readonly toolExposure: 'all' | 'catalog';
  readonly retrieve: Retriever | null;
  readonly model: string | null;
  readonly tools: ToolRegistry;
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly forkFrom: readonly string[];
  readonly limits: Limits;
  readonly onLimit: OnLimit;
  readonly settings: Settings;
  /** Null: never; absent: the defaults. */
  readonly compaction?: Compaction | null;
  readonly description: string;
  readonly mcp: readonly McpServer[];
  /** The agents that it calls; a worker that has the one has the others. */
  readonly agents: readonly Agent[];
}

const CHOICES = {
  toolChoice: ['auto', 'required', 'none'],
  toolCalls: ['parallel', 'sequential', 'first'],
  onLimit: ['answer', 'compose', 'fail'],
  onInvalid: ['fail', 'best_effort'],
  onPlainText: ['respond', 'fail'],
  toolExposure: ['all', 'catalog'],
} as const;

const FIELDS =
  'name instructions model tools mcp agents description toolChoice toolCalls limits onLimit settings compaction output attempts onInvalid decide onPlainText toolExposure retrieve forkFrom'.split(
    ' ',
  );

/** Makes an agent. Throws when the definition cannot work, with the value at fault and the cure. */
export function defineAgent<Output = Json>(options: AgentOptions<Output>): Agent<Output> {
  const name = checkName(options.name);
  refuseUnknownFields(name, options);
  const { instructions } = options;
  const template = isTemplate(instructions) ? instructions : null;
  if (template === null && typeof instructions !== 'string') {
    throw new Error(
      `agent "${name}": instructions must be a text or a template, not ${typeof instructions}`,
    );
  }
  if (options.model !== undefined && (typeof options.model !== 'string' || options.model === '')) {
    throw new Error(`agent "${name}": model must be a name; leave it out to use PERDURE_MODEL`);
  }
  const limits = options.limits ?? {};
  const wrong = checkLimits(limits, 'limits');
  if (wrong !== null) throw new Error(`agent "${name}": ${wrong}`);
  const called = calledAgents(name, options.agents ?? []);
  const compaction = compactionOf(name, options.compaction);
  const tools = registryOf(name, [...(options.tools ?? []), ...called.tools]);
  const toolExposure = choose(name, 'toolExposure', options.toolExposure ?? 'all');
  if (toolExposure === 'catalog') {
    refuseCatalog(name, { decide: options.decide, names: tools.names });
  }
  return Object.freeze({
    name,
    instructions: isTemplate(instructions) ? instructions.text : instructions,
    template,
    answer: options.output === undefined ? null : answerContract(name, options.output),
    attempts: attemptsOf(name, options),
    onInvalid: choose(name, 'onInvalid', options.onInvalid ?? 'fail'),
    decide: decideOf(name, options.decide),
    onPlainText: choose(name, 'onPlainText', options.onPlainText ?? 'respond'),
    retrieve: retrieverOf(name, options.retrieve),
    model: options.model ?? null,
    tools,
    toolExposure,
    toolChoice: choose(name, 'toolChoice', options.toolChoice ?? 'auto'),
    toolCalls: choose(name, 'toolCalls', options.toolCalls ?? 'parallel'),
    limits,
    onLimit: choose(name, 'onLimit', options.onLimit ?? 'answer'),
    settings: settingsOf(name, options.settings, {
      tools: (options.tools ?? []).flatMap((tool) => (tool.kind === undefined ? tool.name : [])),
      decide: options.decide,
    }),
    forkFrom: forkFromOf(name, options.forkFrom ?? []),
    ...(compaction !== undefined && { compaction }),
    description: options.description ?? '',
    mcp: mcpServersOf(name, options.mcp ?? []),
    agents: called.agents,
  });
}

function isTemplate(instructions: string | Template): instructions is Template {
  return typeof instructions === 'object' && instructions !== null && 'args' in instructions;
}

/** All of them stay in one segment of the history. */
const MOST_ATTEMPTS = 100;

function attemptsOf(name: string, { attempts }: Pick<AgentOptions, 'attempts'>): number | null {
  if (attempts === undefined) return null;
  if (Number.isInteger(attempts) && attempts > 0 && attempts <= MOST_ATTEMPTS) return attempts;
  throw new Error(
    `agent "${name}": attempts ${JSON.stringify(attempts)}: give a whole number from 1 to ${MOST_ATTEMPTS}`,
  );
}

function decideOf(name: string, decide: unknown): Agent['decide'] {
  if (decide === undefined || decide === 'tools') return 'tools';
  if (decide === 'schema') return decide;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its result is checked at each call
  if (typeof decide === 'function') return decide as DecideFunction;
  throw new Error(
    `agent "${name}": decide ${JSON.stringify(decide)}: give tools, schema or a function`,
  );
}

function checkName(name: unknown): string {
  if (isAgentName(name)) return name;
  throw new Error(
    `agent name ${JSON.stringify(name)}: give 1 to 64 letters, digits, "_", "-" or "."`,
  );
}

function refuseUnknownFields(name: string, options: object): void {
  const unknown = Object.keys(options).find((key) => !FIELDS.includes(key));
  if (unknown === undefined) return;
  throw new Error(`agent "${name}": no such option "${unknown}"; there are ${FIELDS.join(', ')}`);
}

function choose<F extends keyof typeof CHOICES>(
  name: string,
  field: F,
  value: (typeof CHOICES)[F][number],
): (typeof CHOICES)[F][number] {
  const possible: readonly string[] = CHOICES[field];
  if (possible.includes(value)) return value;
  throw new Error(
    `agent "${name}": ${field} ${JSON.stringify(value)}: give one of ${possible.join(', ')}`,
  );
}
