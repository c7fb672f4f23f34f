import type {
  Compaction,
  Limits,
  OnLimit,
  ParentClose,
  Settings,
  ToolCalls,
  ToolChoice,
} from '../core/definition.js';
import { checkLimits } from '../core/input.js';
import type { Json } from '../core/json.js';
import { calledAgents } from './called-agents.js';
import { compactionOf } from './compaction-of.js';
import { createToolRegistry, type ToolRegistry } from '../tools/registry.js';
import type { Tool } from '../tools/tool.js';
import type { Typed } from './typed.js';

/** What an author writes. */
export interface AgentOptions {
  /** Letters, digits, `_`, `-` and `.`, at most 64 characters; unique on a worker. */
  readonly name: string;
  /** The system message. */
  readonly instructions: string;
  /** An entry of `models` in the config, else a name for the OpenAI adapter; absent: PERDURE_MODEL. */
  readonly model?: string;
  readonly tools?: readonly Tool[];
  /** Agents that this one may call like tools; each call is a run of its own. */
  readonly agents?: readonly (Agent | CalledAgent)[];
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
  /** When a long conversation is summarised; shares of the model's window, default 0.75 and 0.25. */
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
export interface Agent<Output = Json> extends Typed<Output> {
  readonly name: string;
  readonly instructions: string;
  readonly model: string | null;
  readonly tools: ToolRegistry;
  readonly toolChoice: ToolChoice;
  readonly toolCalls: ToolCalls;
  readonly limits: Limits;
  readonly onLimit: OnLimit;
  readonly settings: Settings;
  /** Null: never; absent: the defaults. */
  readonly compaction?: Compaction | null;
  readonly description: string;
  /** The agents that it calls; a worker that has the one has the others. */
  readonly agents: readonly Agent[];
}

const CHOICES = {
  toolChoice: ['auto', 'required', 'none'],
  toolCalls: ['parallel', 'sequential', 'first'],
  onLimit: ['answer', 'compose', 'fail'],
} as const;

const FIELDS =
  'name instructions model tools agents description toolChoice toolCalls limits onLimit settings compaction'.split(
    ' ',
  );

/** Makes an agent. Throws when the definition cannot work, with the value at fault and the cure. */
export function defineAgent(options: AgentOptions): Agent {
  const name = checkName(options.name);
  refuseUnknownFields(name, options);
  if (typeof options.instructions !== 'string') {
    throw new Error(
      `agent "${name}": instructions must be a text, not ${typeof options.instructions}`,
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
  return Object.freeze({
    name,
    instructions: options.instructions,
    model: options.model ?? null,
    tools: registryOf(name, [...(options.tools ?? []), ...called.tools]),
    toolChoice: choose(name, 'toolChoice', options.toolChoice ?? 'auto'),
    toolCalls: choose(name, 'toolCalls', options.toolCalls ?? 'parallel'),
    limits,
    onLimit: choose(name, 'onLimit', options.onLimit ?? 'answer'),
    settings: options.settings ?? {},
    ...(compaction !== undefined && { compaction }),
    description: options.description ?? '',
    agents: called.agents,
  });
}

function checkName(name: unknown): string {
  if (typeof name === 'string' && /^[\w.-]{1,64}$/.test(name)) return name;
  throw new Error(
    `agent name ${JSON.stringify(name)}: give 1 to 64 letters, digits, "_", "-" or "."`,
  );
}

function refuseUnknownFields(name: string, options: object): void {
  const unknown = Object.keys(options).find((key) => !FIELDS.includes(key));
  if (unknown === undefined) return;
  throw new Error(`agent "${name}": no such option "${unknown}"; there are ${FIELDS.join(', ')}`);
}

function registryOf(name: string, tools: readonly Tool[]): ToolRegistry {
  const asking = tools.find(({ approval }) => approval !== undefined && approval !== 'never');
  if (asking !== undefined) {
    // Better no agent than one that acts without the consent its author asked for.
    throw new Error(
      `agent "${name}": tool "${asking.name}" wants approval, which this version cannot ask for; ` +
        'leave `approval` out, or give "never"',
    );
  }
  try {
    return createToolRegistry(tools);
  } catch (error) {
    throw new Error(`agent "${name}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
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
